"""What the catalog says about the engines of a variant: by its model, its accelerators and its arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from controller.observe.accelerators import PRODUCT_LABELS, short_name
from controller.observe.claim import Claim
from controller.observe.engine_arguments import MODEL_FLAGS, argument_text, flag_value, positional_model
from controller.observe.targets import Target
from controller.sizing.catalog import FOUR_BITS, ModelShape, accelerator_named, shape_named, words_of
from controller.sizing.records import Estimate
from controller.sizing.roofline import EngineSetup, estimate

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


def expected_performance(claim: Claim, target: Target) -> Estimate | None:
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
    return _expected(_Subject(claim.model_id, product, target.accelerators_per_replica, arguments))


@lru_cache(maxsize=32_768)
def _expected(subject: _Subject) -> Estimate | None:
    text = subject.arguments
    accelerator = accelerator_named(subject.product, short_name(subject.product))
    named = _named_model(text, subject.model_id)
    if accelerator is None or named is None:
        return None
    name, shape = named
    pipeline, data = _whole(text, _PIPELINE) or 1, _whole(text, _DATA) or 1
    tensor = _whole(text, _TENSOR) or max(1, subject.accelerators // (pipeline * data))
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


def _whole(text: str, names: tuple[str, ...]) -> int | None:
    value = flag_value(text, names)
    is_count = value.isascii() and value.isdigit() and len(value) <= len(str(_MOST_PARALLEL))
    return min(int(value), _MOST_PARALLEL) or None if is_count else None


def _share(text: str) -> float:
    try:
        share = float(flag_value(text, _MEMORY))
    except ValueError:
        return _MEMORY_SHARE
    return share if 0 < share <= 1 else _MEMORY_SHARE
