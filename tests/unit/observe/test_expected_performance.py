"""Command lines of engines, and what the catalog says about them."""

from __future__ import annotations

from typing import Any

import pytest
from support.gathering import gathered, placed
from support.manifests import deployment, variant

from controller.observe.expected_performance import engine_argument, runs_engine, served_model
from controller.sizing.records import Estimate

KEY = ("ns", "chat")
H100 = "NVIDIA-H100-80GB-HBM3"


def expected(
    arguments: list[str], *, model: str = "chat", product: str = H100, accelerators: int = 1
) -> Estimate | None:
    """Return the estimate for an engine with some arguments."""
    workload = placed(deployment("chat", product=product, accelerators=accelerators))
    workload["spec"]["template"]["spec"]["containers"][0]["args"] = arguments
    seen = gathered(placed(variant("chat", modelID=model)), deployments=(workload,))
    return seen.observed[KEY].facts.estimate


BASES = {
    "the model ID alone": ([], "meta-llama/Llama-3.1-8B", 1, "Llama-3.1-8B with 16-bit weights on H100"),
    "the argument names the weights": (
        ["--model", "Qwen/Qwen3-8B"],
        "chat",
        1,
        "Qwen3-8B with 16-bit weights on H100",
    ),
    "the argument is a path without meaning": (
        ["--model=/mnt/weights"],
        "Qwen/Qwen3-8B",
        1,
        "Qwen3-8B with 16-bit weights on H100",
    ),
    "a positional argument": (
        ["sh", "-c", "exec vllm serve 'Qwen/Qwen3-14B' --port 8000"],
        "chat",
        1,
        "Qwen3-14B with 16-bit weights on H100",
    ),
    "SGLang": (
        ["--model-path", "meta-llama/Llama-3.3-70B-Instruct", "--tp", "4"],
        "chat",
        4,
        "Llama-3.1-70B with 16-bit weights on 4 x H100",
    ),
    "all accelerators without an argument": (
        [],
        "llama-3.3-70b",
        4,
        "Llama-3.1-70B with 16-bit weights on 4 x H100",
    ),
    "data parallelism": (
        ["--data-parallel-size=4"],
        "llama-8b",
        4,
        "Llama-3.1-8B with 16-bit weights on H100",
    ),
    "quantized by its name": ([], "Qwen/Qwen3-32B-FP8", 1, "Qwen3-32B with 8-bit weights on H100"),
    "quantized by an argument": (
        ["--quantization=awq_marlin"],
        "llama-8b",
        1,
        "Llama-3.1-8B with 4.5-bit weights on H100",
    ),
    "published with few bits": ([], "openai/gpt-oss-20b", 1, "gpt-oss-20b with 4.5-bit weights on H100"),
    "single precision": (["--dtype", "float32"], "llama-8b", 1, "Llama-3.1-8B with 32-bit weights on H100"),
}


@pytest.mark.parametrize(("arguments", "model", "accelerators", "basis"), BASES.values(), ids=BASES)
def test_an_estimate_has_a_basis(arguments: list[str], model: str, accelerators: int, basis: str) -> None:
    """It is shown wherever the estimate is."""
    known = expected(arguments, model=model, accelerators=accelerators)

    assert known is not None
    assert known.basis == basis


def test_the_cache_depends_on_its_arguments() -> None:
    """Memory that others take, and values of eight bits."""
    plain = expected([], model="llama-8b")
    less = expected(["--gpu-memory-utilization=0.5"], model="llama-8b")
    small = expected(["--kv-cache-dtype", "fp8_e4m3"], model="llama-8b")

    assert plain is not None
    assert less is not None
    assert small is not None
    assert less.kv_tokens < plain.kv_tokens
    assert small.kv_tokens == pytest.approx(2 * plain.kv_tokens, abs=2)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--gpu-memory-utilization=nan"],
        ["--gpu-memory-utilization=7"],
        ["--tensor-parallel-size=0"],
        ["--tensor-parallel-size=\u0663"],
        ["--tensor-parallel-size"],
        ["--quantization"],
        ["--model", ""],
        ["--model=" + "9" * 100_000 + "b"],
    ],
)
def test_senseless_arguments_count_as_missing(arguments: list[str]) -> None:
    """Manifests come from users; the engine itself rejects such values."""
    assert expected(arguments, model="llama-8b") == expected([], model="llama-8b")


def test_without_a_known_model_or_accelerator_nothing_is_expected() -> None:
    """No numbers are better than invented ones."""
    assert expected([], model="bge-m3") is None
    assert expected([], model="llama-8b", product="Acme-9000") is None


_VLLM = "vllm/vllm-openai:v0.9.2"

MODELS: dict[str, tuple[dict[str, Any], str]] = {
    "vllm serve": ({"command": ["vllm", "serve", "acme/chat-8b", "--port=8000"]}, "acme/chat-8b"),
    "vllm serve in a script": (
        {"command": ["sh", "-c", "exec vllm serve 'acme/chat-8b' \\\n --port 8000"]},
        "acme/chat-8b",
    ),
    "vLLM's module": (
        {"command": ["python3", "-m", "vllm.entrypoints.openai.api_server"], "args": ["--model", "acme/m"]},
        "acme/m",
    ),
    "the image of vLLM with arguments": ({"image": _VLLM, "args": ["--model=acme/m"]}, "acme/m"),
    "the image of vLLM with the model first": ({"image": _VLLM, "args": ["acme/m", "--port=1"]}, "acme/m"),
    "the name for clients counts": (
        {"image": _VLLM, "args": ["--model=/mnt/models", "--served-model-name", "chat", "spare"]},
        "chat",
    ),
    "SGLang": (
        {"command": ["python3", "-m", "sglang.launch_server", "--model-path", "acme/m", "--tp", "2"]},
        "acme/m",
    ),
    "the image of SGLang": ({"image": "lmsysorg/sglang:v0.5", "args": ["--model-path=acme/m"]}, "acme/m"),
    "a variable is no name": ({"image": _VLLM, "args": ["--model=$(MODEL)"]}, ""),
    "no model": ({"image": _VLLM, "args": ["--port=8000"]}, ""),
    "a command is no model": ({"image": _VLLM, "command": ["sh"], "args": ["start.sh"]}, ""),
}


@pytest.mark.parametrize(("container", "model"), MODELS.values(), ids=MODELS.keys())
def test_the_model_is_read_from_the_command_line(container: dict[str, Any], model: str) -> None:
    """In all the forms that charts and manuals use."""
    pod_spec = {"containers": [{"image": "registry.example/proxy:1", "args": ["--port=1"]}, container]}

    assert runs_engine(pod_spec)
    assert served_model(pod_spec) == model


def test_other_containers_are_no_engines() -> None:
    """Nor is a pod without containers."""
    assert not runs_engine({"containers": [{"image": "registry.example/tgi:3", "args": ["--model-id=m"]}]})
    assert not runs_engine({})


NUMBERS: dict[str, tuple[dict[str, Any], int | None]] = {
    "flag=value": ({"args": ["--max-num-seqs=64"]}, 64),
    "flag and value separate, with underscores": ({"args": ["--max_num_seqs", "64"]}, 64),
    "in a shell script": ({"command": ["sh", "-c", "exec vllm serve m --max-num-seqs 64"]}, 64),
    "flag without a value": ({"args": ["--max-num-seqs"]}, None),
    "another argument": ({"args": ["serve"]}, None),
    "no arguments": ({"args": []}, None),
    "neither args nor command": ({}, None),
    "no number": ({"args": ["--max-num-seqs=$SEQS"]}, None),
    "a number that no engine has": ({"args": ["--max-num-seqs=12345678901"]}, None),
    "after many other arguments": ({"args": ["x" * 17_000, "--max-num-seqs=64"]}, 64),
    "after a comment that mentions it": (
        {"command": ["sh", "-c", "# --max-num-seqs N sets the batch\nvllm serve m --max-num-seqs 64"]},
        64,
    ),
    "after another value": ({"args": ["--max-num-seqs", "auto", "--max-num-seqs=64"]}, 64),
    "zero": ({"args": ["--max-num-seqs=0"]}, None),
}


@pytest.mark.parametrize(("container", "want"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_are_read_from_flags(container: dict[str, Any], want: int | None) -> None:
    """A missing flag or value gives None."""
    assert engine_argument({"containers": [{"name": "engine", **container}]}, "max-num-seqs") == want
