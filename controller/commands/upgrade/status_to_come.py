"""Coordination of two writes: a spec in another shape, and the status derived from the old spec.

A status is written separately, but is derived from the old spec as well. So the write of the spec records in
an annotation what the status takes from the old spec; a run that is interrupted in between resumes from it.

Anyone who may write a spec can write the annotation. It therefore contains no status, only members of
allocations that are always derived from a spec, and the names of allocations to remove because a member is
missing. It can have no effect that a spec could not have.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final

import msgspec

from apiserver.kinds.llmd.shapes import Shape
from apiserver.kinds.llmd.shapes_released import StatusShape
from apiserver.schema.annotations import take_annotation, with_annotation
from apiserver.schema.json import Json, JsonValue, as_object

ANNOTATION: Final = "llmd.ai/status-to-come"

_ALLOCATIONS: Final[tuple[str, ...]] = ("currentAlloc", "desiredOptimizedAlloc")
_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class _Filled(msgspec.Struct, frozen=True, rename="camel"):
    """The members that an allocation takes from the spec, and no others."""

    variant_id: str | msgspec.UnsetType = msgspec.field(name="variantID", default=msgspec.UNSET)
    accelerator: str | msgspec.UnsetType = msgspec.UNSET
    max_batch: int | msgspec.UnsetType = msgspec.UNSET
    variant_cost: str | msgspec.UnsetType = msgspec.UNSET


class _ToCome(msgspec.Struct, frozen=True):
    filled: Mapping[str, _Filled]
    gone: tuple[str, ...]
    """Allocations that lack a member that neither status nor spec has."""
    status: str
    """The digest of the status that this belongs to. A different status was written by another client
    since."""


def announcing(value: Json, status: JsonValue) -> Json:
    """Return an object with the current status, and an announcement of the one in `value`."""
    old, new = as_object(status), as_object(value.get("status"))
    filled = {name: _fill(old[name], new[name]) for name in _ALLOCATIONS if name in old and name in new}
    gone = tuple(name for name in _ALLOCATIONS if name in old and name not in new)
    text = _encode(_ToCome(filled=filled, gone=gone, status=_digest(status))).decode()
    return with_annotation(value, ANNOTATION, text)


def with_announced_status(value: Json, shape: Shape) -> Json:
    """Return an object with the announced changes in its status; unchanged without an announcement."""
    plain = without_announcement(value)
    if plain is value or shape.status is None:
        return plain
    try:
        to_come = msgspec.json.decode(as_object(value["metadata"]["annotations"])[ANNOTATION], type=_ToCome)
    except (msgspec.DecodeError, RecursionError, TypeError):  # not written by us
        return plain
    if to_come.status != _digest(value.get("status")):
        return plain
    come = {
        name: _come(name, item, to_come, shape.status) if name in _ALLOCATIONS else item
        for name, item in as_object(value.get("status")).items()
    }
    return plain | {"status": {name: item for name, item in come.items() if item is not None}}


def _come(name: str, item: JsonValue, to_come: _ToCome, shape: StatusShape) -> Json | None:
    """Return an allocation with the announced members; None if it is to be removed."""
    fields = shape.current_alloc if name == "currentAlloc" else shape.desired_alloc
    filled: Json = msgspec.to_builtins(to_come.filled.get(name, _Filled()))
    said = filled | as_object(item)
    return None if name in to_come.gone and shape.missing_members(said, fields) else said


def announces(value: Json) -> bool:
    """Tell whether an object announces a status."""
    return without_announcement(value) is not value


def without_announcement(value: Json) -> Json:
    """Return an object without an announcement; the same object if it has none."""
    return take_annotation(value, ANNOTATION)[0]


def _fill(old: JsonValue, new: JsonValue) -> _Filled:
    """Return the members that a new allocation has in addition to the old one."""
    made = {name: item for name, item in as_object(new).items() if name not in as_object(old)}
    return msgspec.convert(made, type=_Filled)


def _digest(status: JsonValue) -> str:
    return hashlib.sha256(_encode(status)).hexdigest()
