"""The shapes of VariantAutoscaling released as `llmd.ai/v1alpha1`, and the shape of each release.

There are three families: *modelProfile* lists candidate accelerators, *legacy* describes one variant with its
performance profile, *current* has a scale target and a cost, and bounds from release 0.6 on. The three
entries of `SHAPES` are as permissive as our own `v1alpha1`; those of `RELEASES` have exactly the fields of
the release's schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from apiserver.kinds.llmd import v1alpha1
from apiserver.kinds.llmd.shapes_facts import Facts, total_cost
from apiserver.schema.json import Json, JsonValue, as_object


class ShapeFamily(StrEnum):
    """The feature that distinguishes a shape."""

    MODEL_PROFILE = "modelProfile"
    LEGACY = "legacy"
    CURRENT = "current"


@dataclass(frozen=True, kw_only=True, slots=True)
class StatusShape:
    """The fields of a release's status."""

    current_alloc: tuple[str, ...]
    desired_alloc: tuple[str, ...]
    has_conditions: bool = True
    demands_members: bool = True
    """Whether all fields of an allocation are required, except `lastRunTime`."""

    def missing_members(self, allocation: Json, fields: tuple[str, ...]) -> list[str]:
        """Return the required fields that an allocation lacks, of those of the release."""
        required = fields if self.demands_members else ()
        return [name for name in required if name not in allocation and name != "lastRunTime"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A shape: the fields that its spec may have and those that it must have.

    If `status` is None, the shape is as permissive as our own `v1alpha1`: undeclared fields and the whole
    status are kept. Otherwise it is the schema of a release, which prunes undeclared fields.
    """

    name: str
    family: ShapeFamily
    fields: frozenset[str]
    required: tuple[str, ...]
    status: StatusShape | None = None
    demands_parameters: bool = True
    """Whether each candidate of a modelProfile, and each variantProfile, must have `perfParms`."""

    def __str__(self) -> str:
        return f"the {self.name} shape" if self.status is None else f"release {self.name}"


_ANY: Final = ("modelID", "scaleTargetRef", "variantCost")
_S1_STATUS: Final = StatusShape(
    current_alloc=(
        "accelerator",
        "numReplicas",
        "maxBatch",
        "variantCost",
        "itlAverage",
        "ttftAverage",
        "load",
    ),
    desired_alloc=("accelerator", "numReplicas", "lastRunTime"),
)
_S2_STATUS: Final = StatusShape(
    current_alloc=("variantID", "accelerator", "numReplicas", "maxBatch", "variantCost"),
    desired_alloc=("variantID", "accelerator", "numReplicas", "lastRunTime"),
)
_S3_STATUS: Final = StatusShape(current_alloc=(), desired_alloc=("accelerator", "numReplicas", "lastRunTime"))
_S4_STATUS: Final = replace(_S3_STATUS, demands_members=False)

MODEL_PROFILE: Final = Shape(
    name="modelProfile",
    family=ShapeFamily.MODEL_PROFILE,
    fields=frozenset({*_ANY, "modelProfile", "sloClassRef"}),
    required=("modelID", "modelProfile"),
    demands_parameters=False,
)
LEGACY: Final = Shape(
    name="legacy",
    family=ShapeFamily.LEGACY,
    fields=frozenset({*_ANY, *v1alpha1.LEGACY_FIELDS}),
    required=("modelID", *v1alpha1.LEGACY_FIELDS),
)
CURRENT: Final = Shape(
    name="current", family=ShapeFamily.CURRENT, fields=frozenset(_ANY), required=("modelID", "scaleTargetRef")
)

SHAPES: Final[Mapping[str, Shape]] = {shape.name: shape for shape in (MODEL_PROFILE, LEGACY, CURRENT)}
"""The three shapes by name, each with every other field that our own `v1alpha1` allows."""


def _first(name: str, status: StatusShape) -> Shape:
    names = ("modelID", "modelProfile", "sloClassRef")
    return Shape(
        name=name, family=ShapeFamily.MODEL_PROFILE, fields=frozenset(names), required=names, status=status
    )


def _second(name: str, *, has_service_class: bool) -> Shape:
    service_class = ("sloClassRef",) if has_service_class else ()
    return Shape(
        name=name,
        family=ShapeFamily.MODEL_PROFILE,
        fields=frozenset({"modelID", "modelProfile", "variantCost", *service_class}),
        required=("modelID",),
        status=_S1_STATUS,
        demands_parameters=False,
    )


def _third(name: str) -> Shape:
    return Shape(
        name=name,
        family=ShapeFamily.CURRENT,
        fields=CURRENT.fields,
        required=CURRENT.required,
        status=_S3_STATUS,
    )


def _fourth(name: str) -> Shape:
    """Return the shape with bounds. Its schema sets a missing `maxReplicas` to 2, so a value is required."""
    return Shape(
        name=name,
        family=ShapeFamily.CURRENT,
        fields=CURRENT.fields | {"minReplicas", "maxReplicas"},
        required=(*CURRENT.required, "maxReplicas"),
        status=_S4_STATUS,
    )


_UNRELEASED: Final = Shape(
    name="pull-233",
    family=ShapeFamily.LEGACY,
    fields=frozenset(LEGACY.required),
    required=LEGACY.required,
    status=_S2_STATUS,
)

RELEASES: Final[Mapping[str, Shape]] = {
    shape.name: shape
    for shape in (
        _first("v0.0.1", replace(_S1_STATUS, has_conditions=False)),
        _first("v0.0.2", _S1_STATUS),
        _first("v0.0.3", _S1_STATUS),
        _first("v0.0.4", _S1_STATUS),
        _second("v0.0.5", has_service_class=True),
        _second("v0.4.1", has_service_class=False),
        _second("v0.4.2", has_service_class=False),
        _third("v0.5.0"),
        _third("v0.5.1"),
        _fourth("v0.6.0"),
        _fourth("v0.7.0"),
        _fourth("v0.8.0"),
        _UNRELEASED,
    )
}
"""Each release of the workload variant autoscaler that had this kind, oldest first, with its shape.

`pull-233` is the legacy shape, which was documented and built by some, but never released.
"""


_LEAST_CHARACTERS_WANTED: Final = 2


def released_status(value: Json, facts: Facts, shape: StatusShape, *, title: str, lost: list[str]) -> Json:
    """Return an object with the status fields of a release; append a sentence to `lost` for each lost one.

    Each part is complete by the release's schema, or absent: a status that the schema rejects would make
    every write of the object fail. The release's controller measures and decides anew within a minute.
    """
    status = value.get("status")
    if not isinstance(status, dict):
        return value
    known = _known_fields(value, facts, as_object(status.get("currentAlloc")))
    status_of_shape: Json = {}
    for name, item in status.items():
        if name in {"currentAlloc", "desiredOptimizedAlloc"}:
            item = _allocation(name, as_object(item), shape, known, title=title, lost=lost)  # noqa: PLW2901 (other fields remain unchanged)
        elif not _has_place(name, item, shape):
            lost.append(f"status.{name}: {title} has no such field")
            continue
        if item is not None:
            status_of_shape[name] = item
    return value | {"status": status_of_shape}


def _has_place(name: str, item: JsonValue, shape: StatusShape) -> bool:
    if name == "conditions":
        return shape.has_conditions
    return name == "actuation" and "applied" in as_object(item)


def _known_fields(value: Json, facts: Facts, current: Json) -> Json:
    """Return the fields of an allocation that are known from other parts of the object."""
    identifier = as_object(value.get("spec")).get("variantID")
    cost = total_cost(facts.cost, current.get("numReplicas"))
    known = {
        "variantID": identifier,
        "accelerator": facts.accelerator,
        "maxBatch": facts.batch,
        "variantCost": cost,
    }
    return {name: item for name, item in known.items() if item is not None}


def _allocation(
    name: str, item: Json, shape: StatusShape, known: Json, *, title: str, lost: list[str]
) -> Json | None:
    fields = shape.current_alloc if name == "currentAlloc" else shape.desired_alloc
    if not fields:
        lost.append(f"status.{name}: {title} has no such field")
        return None
    made = known if shape.demands_members else {}
    filled = {field: item.get(field, made.get(field)) for field in fields if field in item or field in made}
    if shape.demands_members and len(str(filled.get("accelerator", ""))) < _LEAST_CHARACTERS_WANTED:
        filled.pop("accelerator", None)
    if missing := shape.missing_members(filled, fields):
        lost.append(f"status.{name}: {title} also requires {', '.join(missing)} in it, and writes it again")
        return None
    lost += [f"status.{name}.{field}: {title} has no such field" for field in item if field not in fields]
    return filled
