"""Fields that upgrading a reshaped object again would not restore, with one sentence for each."""

from __future__ import annotations

from collections.abc import Iterator

from apiserver.kinds.llmd.conversion import HUB, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL, label_of, names_deployment, variant_identifier
from apiserver.kinds.llmd.shapes_facts import brief_json
from apiserver.kinds.llmd.shapes_released import Family, Shape
from apiserver.schema.json import Json, JsonValue, as_object, same


def lost_fields(plain: Json, hub: Json, shaped: Json, shape: Shape) -> Iterator[str]:
    """Yield a sentence for each field that the shaped object has lost.

    `plain` is the object in v1alpha1 without our annotation; `hub` is the complete object in v1alpha2.
    """
    before, again = as_object(hub.get("spec")), as_object(convert(shaped, HUB).get("spec"))
    for name, item in before.items():
        is_back = name in again and _is_in(item, again[name])
        if not is_back and name not in {"scaleTargetRef", "accelerator"}:
            yield f"spec.{name}: {shape} has no field for {brief_json(item)}"
    if not same(before.get("accelerator"), again.get("accelerator", label_of(shaped))):
        yield from _lost_accelerator(before, shaped, shape)
    yield from _lost_target(before, shaped, shape)
    yield from _lost_from_spoke(as_object(plain.get("spec")), before, shaped, shape)
    if "decision" in as_object(hub.get("status")):
        yield "status.decision: only v1alpha2 has this field"


def _is_in(item: JsonValue, again: JsonValue) -> bool:
    """Tell whether the restored value contains the original one; it may have further, made-up members."""
    if isinstance(item, dict) and isinstance(again, dict):
        return all(name in again and same(inner, again[name]) for name, inner in item.items())
    return same(item, again)


def _lost_accelerator(before: Json, shaped: Json, shape: Shape) -> Iterator[str]:
    if "accelerator" not in before:
        return
    label = label_of(shaped)
    instead = f", which uses the label {ACCELERATOR_LABEL}: {label}" if label else ""
    yield f"spec.accelerator: {brief_json(before['accelerator'])} has no field in {shape}{instead}"


def _lost_target(before: Json, shaped: Json, shape: Shape) -> Iterator[str]:
    target = before.get("scaleTargetRef")
    if "scaleTargetRef" in shape.fields or not isinstance(target, dict):
        return
    name = as_object(shaped.get("metadata")).get("name")
    if not names_deployment(target) or target.get("name") != name:
        named = f"{target.get('kind')} {target.get('name')}"
        yield (
            f"spec.scaleTargetRef: {named} is scaled; {shape} scales the Deployment with the name of the"
            f" object, {name}"
        )


def _lost_from_spoke(spoke: Json, before: Json, shaped: Json, shape: Shape) -> Iterator[str]:
    spec = as_object(shaped.get("spec"))
    identifier = spoke.get("variantID")
    if "variantID" not in spec and identifier is not None and identifier != variant_identifier(before):
        yield f"spec.variantID: {shape} has no field for {brief_json(identifier)}"
    if "modelProfile" in spec:
        return
    in_use = before.get("accelerator")
    candidates = as_object(spoke.get("modelProfile")).get("accelerators")
    for position, entry in enumerate(candidates if isinstance(candidates, list) else []):
        candidate = as_object(entry).get("acc")
        if candidate != in_use:
            where = f"spec.modelProfile.accelerators[{position}]"
            yield f"{where}: {shape} has no field for the candidate {brief_json(candidate)}"


def lost_cost(shaped: Json, shape: Shape, *, is_other: bool) -> Iterator[str]:
    """Yield a sentence if a cost implied by the accelerator is replaced by the default of the shape."""
    spec = shaped.get("spec")
    if is_other and shape.family is Family.CURRENT and isinstance(spec, dict) and "variantCost" not in spec:
        yield f"spec.variantCost: {shape} ignores the accelerator's unit cost and uses 10.0"
