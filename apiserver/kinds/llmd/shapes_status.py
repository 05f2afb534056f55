"""The status in the shape of a release: each part is complete by the release's schema, or absent.

The release's controller measures and decides anew within a minute. A status that its schema rejects, however,
would make every write of the object fail.
"""

from __future__ import annotations

from typing import Final

from apiserver.kinds.llmd.shapes_facts import Facts, total_cost
from apiserver.kinds.llmd.shapes_released import StatusShape
from apiserver.schema.json import Json, JsonValue, as_object

_LEAST_CHARACTERS_WANTED: Final = 2


def released_status(value: Json, facts: Facts, shape: StatusShape, *, title: str, lost: list[str]) -> Json:
    """Return an object with the status fields of a release; append a sentence to `lost` for each lost one."""
    status = value.get("status")
    if not isinstance(status, dict):
        return value
    known = _known_fields(value, facts, as_object(status.get("currentAlloc")))
    held: Json = {}
    for name, item in status.items():
        if name in {"currentAlloc", "desiredOptimizedAlloc"}:
            item = _allocation(name, as_object(item), shape, known, title=title, lost=lost)  # noqa: PLW2901 (other fields remain unchanged)
        elif not _has_place(name, item, shape):
            lost.append(f"status.{name}: {title} has no such field")
            continue
        if item is not None:
            held[name] = item
    return value | {"status": held}


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
