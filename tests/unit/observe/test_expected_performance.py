"""What the catalog says about a variant by its arguments, its node selector and its declarations."""

from __future__ import annotations

import pytest
from support.gathering import gathered, placed
from support.manifests import deployment, variant

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
