"""Conversion of VariantAutoscalings to the shape of a release, to downgrade manifests or clusters.

Version conversion changes the version name and loses nothing. A shape change stays within `llmd.ai/v1alpha1`
and may lose fields, since a release has no annotation to keep them in. It therefore reports what was lost,
and which required but unknown fields were filled with placeholders.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL, implied_target
from apiserver.kinds.llmd.shapes_facts import Facts, facts_of
from apiserver.kinds.llmd.shapes_lost import lost_cost, lost_fields
from apiserver.kinds.llmd.shapes_making import MAKERS, with_parameters
from apiserver.kinds.llmd.shapes_released import (
    CURRENT,
    LEGACY,
    MODEL_PROFILE,
    RELEASES,
    SHAPES,
    Family,
    Shape,
)
from apiserver.kinds.llmd.shapes_status import released_status
from apiserver.schema.annotations import take_annotation
from apiserver.schema.json import Json, as_object, same

__all__ = [
    "CURRENT",
    "LEGACY",
    "MODEL_PROFILE",
    "RELEASES",
    "SHAPES",
    "Family",
    "Shape",
    "Shaped",
    "in_shape",
    "shape_of",
    "without_annotation",
]

_DECLARED: Final = MODEL_PROFILE.fields | LEGACY.fields
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class Shaped:
    """An object in a shape, with a sentence for each field that was lost and for each that was made up.

    Each sentence begins with the path of the field: `spec.acceleratorCount: 4 has no place in …`.
    """

    value: Json
    lost: list[str]
    made_up: list[str]


def shape_of(value: Json) -> Shape:
    """Return which of `SHAPES` an object has, in whichever version it is given; never fails."""
    spec = as_object(convert(value, SPOKE).get("spec"))
    if "modelProfile" in spec:
        return MODEL_PROFILE
    if any(name in spec for name in ("variantID", "accelerator", "acceleratorCount", "variantProfile")):
        return LEGACY
    # One release of the modelProfile shape required only the model.
    is_bare = "scaleTargetRef" not in spec and ("modelID" in spec or "sloClassRef" in spec)
    return MODEL_PROFILE if is_bare else CURRENT


def in_shape(value: Json, shape: Shape) -> Shaped:
    """Return an object in `llmd.ai/v1alpha1` in a shape, without changing the input.

    An object that had this shape is restored exactly. Our annotation is dropped, and what only it holds is
    lost, since a release does not read it. Never fails, whatever the object.
    """
    spoke, hub = convert(value, SPOKE), convert(value, HUB)
    plain = without_annotation(spoke)
    made_up: list[str] = []
    is_other = shape_of(spoke).family is not shape.family
    shaped = plain
    if isinstance(plain.get("spec"), dict) and (is_other or shape.status is not None):
        shaped = plain | {"spec": _spec(plain, hub, shape, is_other=is_other, made_up=made_up)}
    lost_status: list[str] = []
    if shape.status is not None:
        shaped = released_status(shaped, facts_of(hub), shape.status, title=str(shape), lost=lost_status)
    shaped = _labelled(shaped, hub, is_other=is_other)
    lost = [*lost_fields(plain, hub, shaped, shape), *lost_cost(shaped, shape, is_other=is_other)]
    lost += lost_status
    return Shaped(value=shaped, lost=lost, made_up=made_up)


def without_annotation(value: Json) -> Json:
    """Return an object without the annotation in which conversion keeps fields of the other version."""
    return take_annotation(value, ANNOTATION)[0]


def _spec(plain: Json, hub: Json, shape: Shape, *, is_other: bool, made_up: list[str]) -> Json:
    source = as_object(hub.get("spec")) | _identified(plain) if is_other else plain["spec"]
    spec = {name: item for name, item in source.items() if _has_place(name, shape)}
    facts = facts_of(hub)
    if (
        is_other
        and shape.family is not Family.CURRENT
        and same(spec.get("scaleTargetRef"), implied_target(plain))
    ):
        del spec["scaleTargetRef"]
    if is_other and shape.family is Family.CURRENT and "variantCost" not in spec and facts.cost:
        spec["variantCost"] = facts.cost
    for name in _wanted(shape, facts):
        if name not in spec:
            spec[name] = MAKERS[name](facts, made_up)
    return spec | with_parameters(spec, made_up) if shape.demands_parameters else spec


def _identified(plain: Json) -> Json:
    return {name: item for name, item in plain["spec"].items() if name == "variantID"}


def _has_place(name: str, shape: Shape) -> bool:
    return name in shape.fields or (shape.status is None and name not in _DECLARED)


def _wanted(shape: Shape, facts: Facts) -> tuple[str, ...]:
    is_known = "modelProfile" in shape.fields and facts.parameters is not None
    return (*shape.required, "modelProfile") if is_known else shape.required


def _labelled(value: Json, hub: Json, *, is_other: bool) -> Json:
    """Set the accelerator label, which the releases read, unless the object has the label already."""
    said = as_object(hub.get("spec")).get("accelerator")
    metadata = value.get("metadata")
    labels = metadata.get("labels", {}) if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or ACCELERATOR_LABEL in labels:
        return value
    if not isinstance(said, str) or not _LABEL_VALUE.fullmatch(said):
        return value
    # Of several candidates, the one in status was in use, which is lost if the status is cut.
    is_told = as_object(convert(value, HUB).get("spec")).get("accelerator") == said
    if not is_other and is_told:
        return value
    return value | {"metadata": as_object(metadata) | {"labels": labels | {ACCELERATOR_LABEL: said}}}
