"""Command lines of engines, and what the catalog says about a variant by them, its model and accelerators.

A command line shows whether containers run vLLM or SGLang, their flags, and the model they serve.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, NamedTuple

from apiserver.schema.json import Json
from controller.observe.accelerators import PRODUCT_LABELS, short_name
from controller.observe.claim import Claim
from controller.observe.targets import ScaleTarget
from controller.sizing.catalog import FOUR_BITS, ModelShape, accelerator_named, shape_named, words_of
from controller.sizing.records import Estimate
from controller.sizing.roofline import EngineSetup, estimate

MODEL_FLAGS: Final = ("model", "model-path", "served-model-name")
"""Flags that name the model, in vLLM and in SGLang; their values keep their case."""

_QUOTING: Final = str.maketrans("", "", "\"'\\[],")
_LONGEST: Final = 16_384
_MOST_DIGITS: Final = 10
_ENGINE: Final = re.compile(r"vllm|sglang|lmsysorg", re.IGNORECASE)
_SERVED: Final = re.compile(r"\bvllm\s+serve\s+([^\s-]\S*)")


def argument_text(pod_spec: Json) -> str:
    """Return the commands and arguments of all containers, without quotes, one word or script in a line.

    Scripts are searched and not parsed, because a parser's time can grow with the square of their length.
    """
    return "\n".join(_words(pod_spec))[:_LONGEST].translate(_QUOTING)


def flag_value(text: str, names: tuple[str, ...]) -> str:
    """Return the value of the first of these flags, or an empty string; lower-case but for models."""
    for name in names:
        if match := _flag(name).search(text):
            return match[1].lower() if name not in MODEL_FLAGS else match[1]
    return ""


def flag_number(text: str, names: tuple[str, ...]) -> int | None:
    """Return the value of the first of these flags, if it is a whole number above 0."""
    value = flag_value(text, names)
    return int(value) or None if value.isascii() and value.isdigit() and len(value) < _MOST_DIGITS else None


def engine_argument(pod_spec: Json, name: str) -> int | None:
    """Return the first whole number above 0 that any container has for `--name`, or None.

    Other values are passed over: a script may mention the flag before it sets it.
    """
    flag = re.compile(rf"{_start_of(name)}([0-9]{{1,9}})(?!\S)")
    match = flag.search("\n".join(_words(pod_spec)).translate(_QUOTING))
    return int(match[1]) or None if match else None


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
    catalog_name = next(filter(None, names), "")
    return "" if "$" in catalog_name else catalog_name


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
    return re.compile(rf"{_start_of(name)}([^\s-]\S{{0,255}})")


def _start_of(flag: str) -> str:
    return rf"(?<!\S)-{{1,2}}{flag.replace('-', '[-_]')}(?:=|\s+)"


_MOST_PARALLEL: Final = 1024
_MEMORY_SHARE: Final = 0.9

_TENSOR: Final = ("tensor-parallel-size", "tp-size", "tp")
_PIPELINE: Final = ("pipeline-parallel-size", "pp-size", "pp")
_DATA: Final = ("data-parallel-size", "dp-size", "dp")
_MEMORY: Final = ("gpu-memory-utilization", "mem-fraction-static")
"""Flags of vLLM and of SGLang with the same meaning."""

_FOUR: Final = frozenset(
    {"awq", "gptq", "int4", "w4a16", "4bit", "mxfp4", "nvfp4", "fp4", "marlin", "bitsandbytes", "gguf"}
)
_EIGHT: Final = frozenset({"fp8", "w8a8", "int8", "fbgemm", "8bit", "w8a16"})
_COMPUTED: Final = frozenset({"fp8", "w8a8", "int8", "fbgemm"})
"""Words in names of models and quantizations: weights of 4 and of 8 bits, and those computed with 8 bits."""


class _Subject(NamedTuple):
    """All that an estimate depends on."""

    model_id: str
    product: str
    """Accelerator as in the label of a node, or as declared."""

    accelerators: int
    arguments: str


def expected_performance(claim: Claim, target: ScaleTarget) -> Estimate | None:
    """Return what the catalog says about one engine of a variant.

    None if the catalog does not know the model or the accelerator.
    """
    selected = target.pod_spec.get("nodeSelector") or {}
    product = next((selected[name] for name in PRODUCT_LABELS if selected.get(name)), "")
    if claim.accelerator and (not product or short_name(product) != claim.accelerator):
        product = claim.accelerator
    if not product:
        return None
    arguments = argument_text(target.engine_spec)
    return _estimate_for(_Subject(claim.model_id, product, target.accelerators_per_replica, arguments))


@lru_cache(maxsize=32_768)
def _estimate_for(subject: _Subject) -> Estimate | None:
    text = subject.arguments
    accelerator = accelerator_named(subject.product, short_name(subject.product))
    entry = _named_model(text, subject.model_id)
    if accelerator is None or entry is None:
        return None
    name, shape = entry
    pipeline, data = (min(flag_number(text, names) or 1, _MOST_PARALLEL) for names in (_PIPELINE, _DATA))
    tensor = min(
        flag_number(text, _TENSOR) or max(1, subject.accelerators // (pipeline * data)), _MOST_PARALLEL
    )
    bits, is_computed = _quantization(text, name, subject.model_id, shape)
    setup = EngineSetup(
        tensor_parallel=tensor,
        pipeline_parallel=pipeline,
        weight_bits=bits,
        computes_8bit=is_computed,
        cache_bits=8.0 if "fp8" in flag_value(text, ("kv-cache-dtype",)) else 16.0,
        memory_share=_share(text),
    )
    accelerators = tensor * pipeline
    many = f"{accelerators} x " if accelerators > 1 else ""
    basis = f"{shape.name} with {bits:.2g}-bit weights on {many}{short_name(subject.product)}"
    return estimate(shape, accelerator, setup, basis=basis)


def _named_model(text: str, model_id: str) -> tuple[str, ModelShape] | None:
    """Return the first name that the catalog knows, and its dimensions; those of its table take precedence.

    The arguments name the weights that are loaded, and the model ID is what clients call them.
    """
    names = [positional_model(text), *(flag_value(text, (flag,)) for flag in MODEL_FLAGS), model_id]
    known = [(name, shape) for name in names if name and (shape := shape_named(name))]
    return next((item for item in known if item[1].is_exact), known[0] if known else None)


def _quantization(text: str, name: str, model_id: str, shape: ModelShape) -> tuple[float, bool]:
    """Return the bits per weight, and whether the engine computes with 8 bits."""
    stated = words_of(flag_value(text, ("quantization",)).replace("_", "-"))
    for words in (stated, words_of(name) | words_of(model_id)):
        if words & _FOUR:
            return FOUR_BITS, False
        if words & _EIGHT:
            return 8.0, bool(words & _COMPUTED)
    is_single = flag_value(text, ("dtype",)) in ("float32", "float")
    bits = 2 * shape.weight_bits if is_single else shape.weight_bits
    return bits, bits == 8.0  # noqa: PLR2004 (bits of weights that are published with 8)


def _share(text: str) -> float:
    try:
        share = float(flag_value(text, _MEMORY))
    except ValueError:
        return _MEMORY_SHARE
    return share if 0 < share <= 1 else _MEMORY_SHARE
