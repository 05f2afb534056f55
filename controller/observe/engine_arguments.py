"""Command lines of engines: whether containers run vLLM or SGLang, their flags, and the model they serve."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final

from apiserver.schema.json import Json

MODEL_FLAGS: Final = ("model", "model-path", "served-model-name")
"""Flags that name the model, in vLLM and in SGLang; their values keep their case."""

_QUOTING: Final = str.maketrans("", "", "\"'\\[],")
_LONGEST: Final = 16_384
_ENGINE: Final = re.compile(r"vllm|sglang|lmsysorg", re.IGNORECASE)
_SERVED: Final = re.compile(r"\bvllm\s+serve\s+([^\s-]\S*)")


def argument_text(pod_spec: Json) -> str:
    """Return the commands and arguments of all containers, without quotes, one word or script in a line."""
    return "\n".join(_words(pod_spec))[:_LONGEST].translate(_QUOTING)


def flag_value(text: str, names: tuple[str, ...]) -> str:
    """Return the value of the first of these flags, or an empty string; lower-case but for models."""
    for name in names:
        if match := _flag(name).search(text):
            return match[1].lower() if name not in MODEL_FLAGS else match[1]
    return ""


def positional_model(text: str) -> str:
    """Return the model of `vllm serve MODEL`, or an empty string."""
    match = _SERVED.search(text)
    return match[1] if match else ""


def runs_engine(pod_spec: Json) -> bool:
    """Return whether a container's command, arguments or image name vLLM or SGLang."""
    images = (str(item.get("image") or "") for item in pod_spec.get("containers") or [])
    return any(map(_ENGINE.search, (*images, *_words(pod_spec))))


def served_model(pod_spec: Json) -> str:
    """Return the name by which clients call the model of an engine; empty if no argument has it.

    An image that starts the engine itself gets the model as its first argument.
    """
    text = argument_text(pod_spec)
    names = (
        flag_value(text, ("served-model-name",)),
        positional_model(text),
        flag_value(text, MODEL_FLAGS),
        _first_argument(pod_spec),
    )
    named = next(filter(None, names), "")
    return "" if "$" in named else named


def _first_argument(pod_spec: Json) -> str:
    for container in pod_spec.get("containers") or []:
        arguments = container.get("args") or []
        is_started = not container.get("command") and _ENGINE.search(str(container.get("image") or ""))
        if is_started and arguments and re.fullmatch(r"[^\s-]\S*", arguments[0]):
            return str(arguments[0])
    return ""


def _words(pod_spec: Json) -> Iterator[str]:
    for container in pod_spec.get("containers") or []:
        yield from container.get("command") or []
        yield from container.get("args") or []


@lru_cache(maxsize=64)
def _flag(name: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\S)-{{1,2}}{name.replace('-', '[-_]')}(?:=|\s+)([^\s-]\S{{0,255}})")
