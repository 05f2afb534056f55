"""Conversion of VariantAutoscalings to the shape of a release, to downgrade manifests or clusters.

Version conversion changes the version name and loses nothing. A shape change stays within `llmd.ai/v1alpha1`
and may lose fields, since a release has no annotation to keep them in. It therefore reports what was lost,
and which required but unknown fields were filled with placeholders.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from apiserver.kinds.llmd.conversion import ANNOTATION, HUB, SPOKE, convert
from apiserver.kinds.llmd.identity import (
    ACCELERATOR_LABEL,
    UNKNOWN,
    identifier_of,
    implied_target,
    label_of,
    names_deployment,
    variant_identifier,
)
from apiserver.kinds.llmd.shapes_facts import Facts, brief_json, facts_of
from apiserver.kinds.llmd.shapes_released import (
    CURRENT,
    LEGACY,
    MODEL_PROFILE,
    RELEASES,
    SHAPES,
    Shape,
    ShapeFamily,
    released_status,
)
from apiserver.schema.json import Json, JsonValue, as_list, as_object, same
from apiserver.schema.metadata import take_annotation

_DEFAULT_BATCH: Final = 256
"""The default maximum batch size of the engines."""

_DEFAULT_MOST_REPLICAS: Final = 2
"""The default of the releases that have this field."""

_NO_SERVICE_CLASS: Final = {"name": "service-classes-config", "key": UNKNOWN}
"""A reference to a service class that does not exist, which the controller reports."""

_NO_PARAMETERS: Final = {"decodeParms": {"unknown": "0"}, "prefillParms": {"unknown": "0"}}
"""Performance parameters that every controller recognizes as placeholders: the names that it looks for are
missing. It therefore skips the object and scales nothing by numbers that were never measured."""


def _model_profile(facts: Facts, made_up: list[str]) -> JsonValue:
    where = "spec.modelProfile.accelerators[0]"
    entry = {
        "acc": _fact_or_placeholder(facts.accelerator, UNKNOWN, f"{where}.acc", made_up),
        "accCount": _fact_or_placeholder(facts.count, 1, f"{where}.accCount", made_up),
        **_performance(facts, where, made_up),
    }
    return {"accelerators": [entry]}


def _performance(facts: Facts, where: str, made_up: list[str]) -> Json:
    return {
        "perfParms": _fact_or_placeholder(facts.parameters, _NO_PARAMETERS, f"{where}.perfParms", made_up),
        "maxBatchSize": _fact_or_placeholder(facts.batch, _DEFAULT_BATCH, f"{where}.maxBatchSize", made_up),
    }


def _fact(name: str, placeholder: JsonValue, path: str) -> Maker:
    """Return the constructor of a field from one of the facts."""
    return lambda facts, made_up: _fact_or_placeholder(getattr(facts, name), placeholder, path, made_up)


def _identifier(facts: Facts, made_up: list[str]) -> JsonValue:
    parts = (facts.model or UNKNOWN, facts.accelerator or UNKNOWN, facts.count or 1)
    identifier = identifier_of(*parts)
    if identifier != "{}-{}-{}".format(*parts):
        text = (
            f"the names contain characters that are not allowed here; the value is {brief_json(identifier)}"
        )
        made_up.append(f"spec.variantID: {text}")
    return identifier


def _most_replicas(facts: Facts, made_up: list[str]) -> JsonValue:
    """Return a maximum that limits nothing that runs, but at least the default of the releases."""
    most = max(_DEFAULT_MOST_REPLICAS, facts.replicas)
    made_up.append(f"spec.maxReplicas: the object has no value; the release would scale it to at most {most}")
    return most


Maker: TypeAlias = Callable[[Facts, list[str]], JsonValue]
"""Constructor of a field of the spec. It appends one sentence to the list for each value that it makes up."""

_MAKERS: Final[Mapping[str, Maker]] = {
    "modelID": _fact("model", UNKNOWN, "spec.modelID"),
    "modelProfile": _model_profile,
    "variantID": _identifier,
    "accelerator": _fact("accelerator", UNKNOWN, "spec.accelerator"),
    "acceleratorCount": _fact("count", 1, "spec.acceleratorCount"),
    "sloClassRef": _fact("service_class", _NO_SERVICE_CLASS, "spec.sloClassRef"),
    "variantProfile": lambda facts, made_up: _performance(facts, "spec.variantProfile", made_up),
    "scaleTargetRef": lambda facts, _: facts.target,
    "maxReplicas": _most_replicas,
}


def _with_parameters(spec: Json, made_up: list[str]) -> Json:
    """Return the profiles of a spec that lack parameters, with placeholder parameters added."""
    own = spec.get("variantProfile")
    if isinstance(own, dict) and "perfParms" not in own:
        made = _fact_or_placeholder(None, _NO_PARAMETERS, "spec.variantProfile.perfParms", made_up)
        return {"variantProfile": own | {"perfParms": made}}
    profile = as_object(spec.get("modelProfile"))
    candidates = as_list(profile.get("accelerators"))
    whole = [
        entry | {"perfParms": _fact_or_placeholder(None, _NO_PARAMETERS, _parameters_of(position), made_up)}
        if isinstance(entry, dict) and "perfParms" not in entry
        else entry
        for position, entry in enumerate(candidates)
    ]
    return {} if whole == candidates else {"modelProfile": profile | {"accelerators": whole}}


def _parameters_of(position: int) -> str:
    return f"spec.modelProfile.accelerators[{position}].perfParms"


def _fact_or_placeholder(fact: JsonValue, placeholder: JsonValue, path: str, made_up: list[str]) -> JsonValue:
    if fact is not None:
        return fact
    made_up.append(f"{path}: the object has no value; the placeholder is {brief_json(placeholder)}")
    return copy.deepcopy(placeholder)


__all__ = [
    "CURRENT",
    "LEGACY",
    "MODEL_PROFILE",
    "RELEASES",
    "SHAPES",
    "Shape",
    "ShapeFamily",
    "ShapedObject",
    "in_shape",
    "shape_of",
    "without_annotation",
]

_DECLARED: Final = MODEL_PROFILE.fields | LEGACY.fields
_LABEL_VALUE: Final = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", re.ASCII)


@dataclass(frozen=True, kw_only=True, slots=True)
class ShapedObject:
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


def in_shape(value: Json, shape: Shape) -> ShapedObject:
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
    shaped = _with_label(shaped, hub, is_other=is_other)
    lost = [*_lost_fields(plain, hub, shaped, shape), *_lost_cost(shaped, shape, is_other=is_other)]
    lost += lost_status
    return ShapedObject(value=shaped, lost=lost, made_up=made_up)


def without_annotation(value: Json) -> Json:
    """Return an object without the annotation in which conversion keeps fields of the other version."""
    return take_annotation(value, ANNOTATION)[0]


def _spec(plain: Json, hub: Json, shape: Shape, *, is_other: bool, made_up: list[str]) -> Json:
    source = as_object(hub.get("spec")) | _with_identity(plain) if is_other else plain["spec"]
    spec = {name: item for name, item in source.items() if _has_place(name, shape)}
    facts = facts_of(hub)
    if (
        is_other
        and shape.family is not ShapeFamily.CURRENT
        and same(spec.get("scaleTargetRef"), implied_target(plain))
    ):
        del spec["scaleTargetRef"]
    if is_other and shape.family is ShapeFamily.CURRENT and "variantCost" not in spec and facts.cost:
        spec["variantCost"] = facts.cost
    for name in _missing_facts(shape, facts):
        if name not in spec:
            spec[name] = _MAKERS[name](facts, made_up)
    return spec | _with_parameters(spec, made_up) if shape.demands_parameters else spec


def _with_identity(plain: Json) -> Json:
    return {name: item for name, item in plain["spec"].items() if name == "variantID"}


def _has_place(name: str, shape: Shape) -> bool:
    return name in shape.fields or (shape.status is None and name not in _DECLARED)


def _missing_facts(shape: Shape, facts: Facts) -> tuple[str, ...]:
    is_known = "modelProfile" in shape.fields and facts.parameters is not None
    return (*shape.required, "modelProfile") if is_known else shape.required


def _with_label(value: Json, hub: Json, *, is_other: bool) -> Json:
    """Set the accelerator label, which the releases read, unless the object has the label already."""
    accelerator = as_object(hub.get("spec")).get("accelerator")
    metadata = value.get("metadata")
    labels = metadata.get("labels", {}) if isinstance(metadata, dict) else None
    if not isinstance(labels, dict) or ACCELERATOR_LABEL in labels:
        return value
    if not isinstance(accelerator, str) or not _LABEL_VALUE.fullmatch(accelerator):
        return value
    # Of several candidates, the one in status was in use, which is lost if the status is cut.
    is_told = as_object(convert(value, HUB).get("spec")).get("accelerator") == accelerator
    if not is_other and is_told:
        return value
    return value | {"metadata": as_object(metadata) | {"labels": labels | {ACCELERATOR_LABEL: accelerator}}}


def _lost_fields(plain: Json, hub: Json, shaped: Json, shape: Shape) -> Iterator[str]:
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


def _lost_cost(shaped: Json, shape: Shape, *, is_other: bool) -> Iterator[str]:
    """Yield a sentence if a cost implied by the accelerator is replaced by the default of the shape."""
    spec = shaped.get("spec")
    if (
        is_other
        and shape.family is ShapeFamily.CURRENT
        and isinstance(spec, dict)
        and "variantCost" not in spec
    ):
        yield f"spec.variantCost: {shape} ignores the accelerator's unit cost and uses 10.0"
