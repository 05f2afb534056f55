"""Command lines of engines: which containers run one, and which model it serves."""

from __future__ import annotations

from typing import Any

import pytest

from controller.observe.expected_performance import engine_argument, runs_engine, served_model

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
}


@pytest.mark.parametrize(("container", "want"), NUMBERS.values(), ids=NUMBERS.keys())
def test_numbers_are_read_from_flags(container: dict[str, Any], want: int | None) -> None:
    """A missing flag or value gives None."""
    assert engine_argument({"containers": [{"name": "engine", **container}]}, "max-num-seqs") == want
