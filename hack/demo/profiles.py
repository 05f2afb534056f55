"""The profile of a pod's simulated engine, from arguments in its template and annotations.

Pods of a Model have no annotations of their own; additional engine arguments replace them.
"""

from __future__ import annotations

import json
import re
from itertools import pairwise

from apiserver.schema.json import Json
from controller.observe.expected_performance import engine_argument
from controller.simulation.profile import EngineProfile

DECODE_ANNOTATION = "simulation.stowplan.dev/decode-parms"
PREFILL_ANNOTATION = "simulation.stowplan.dev/prefill-parms"
START_UP_ANNOTATION = "simulation.stowplan.dev/start-up"
"""Seconds such as `20s` from binding until the pod is Ready; kwok waits for that time."""

_FLAGS = {
    "--simulated-decode-parms": DECODE_ANNOTATION,
    "--simulated-prefill-parms": PREFILL_ANNOTATION,
}
_SECONDS = re.compile(r"[0-9]{1,4}s\Z")
_MODEL_FLAG = "--model="
_SERVED_FLAG = "--served-model-name"
_SIZES = ("num-gpu-blocks-override", "max-num-seqs", "max-num-batched-tokens", "block-size")


class UnreadableProfileError(ValueError):
    """A pod requests a simulated engine with an invalid profile; the message names pod and field."""


def is_simulated(pod: Json) -> bool:
    """Tell whether a pod requests a simulated engine."""
    return DECODE_ANNOTATION in _arguments_of(pod)


def profile_of(pod: Json) -> EngineProfile:
    """Return the profile of a pod that `is_simulated`. Raises UnreadableProfileError."""
    try:
        return _profile(pod["spec"], _arguments_of(pod))
    except (KeyError, TypeError, ValueError) as error:
        raise UnreadableProfileError(f"pod {pod['metadata']['name']}: {error}") from error


def start_up_seconds_of(pod: Json) -> float:
    """Return the start-up time of a pod's engine in seconds. Raises UnreadableProfileError."""
    text = pod["metadata"]["annotations"].get(START_UP_ANNOTATION, "0s")
    if not _SECONDS.match(text):
        raise UnreadableProfileError(f"{START_UP_ANNOTATION}: must be seconds such as 20s, was {text!r}")
    return float(text.removesuffix("s"))


def _arguments_of(pod: Json) -> dict[str, str]:
    pairs = pairwise(_words(pod["spec"]))
    arguments = {_FLAGS[flag]: text for flag, text in pairs if flag in _FLAGS}
    return arguments | (pod["metadata"].get("annotations") or {})


def _words(spec: Json) -> list[str]:
    return [
        word
        for container in spec["containers"]
        for word in (*(container.get("command") or []), *(container.get("args") or []))
    ]


def _profile(spec: Json, annotations: dict[str, str]) -> EngineProfile:
    decode, prefill = json.loads(annotations[DECODE_ANNOTATION]), json.loads(annotations[PREFILL_ANNOTATION])
    sizes = {name: engine_argument(spec, name) for name in _SIZES}
    blocks = sizes.pop("num-gpu-blocks-override")
    if blocks is None:
        raise ValueError("--num-gpu-blocks-override must be given")
    stated = {name.replace("-", "_"): value for name, value in sizes.items() if value is not None}
    return EngineProfile(
        model_id=_model(spec),
        alpha_ms=float(decode["alpha"]),
        beta_ms=float(decode["beta"]),
        gamma_ms=float(prefill["gamma"]),
        delta_ms=float(prefill["delta"]),
        num_gpu_blocks=blocks,
        role="",
        **stated,
    )


def _model(spec: Json) -> str:
    arguments = _words(spec)
    models = [text.removeprefix(_MODEL_FLAG) for text in arguments if text.startswith(_MODEL_FLAG)]
    models += [name for flag, name in pairwise(arguments) if flag == _SERVED_FLAG]
    if len(models) != 1:
        raise ValueError(
            f"{_MODEL_FLAG}NAME or {_SERVED_FLAG} NAME must be given once, was given {len(models)} times"
        )
    return models[0]
