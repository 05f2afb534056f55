"""Lossless conversion between two versions, out of two functions that each may lose something.

A pair of versions declares two total functions, one for each direction. What the way there and back would
lose is found by walking it: the returned object is compared with the original, and each field that differs
is kept in one annotation, *beside the value that came back instead*. On the real way back a kept field is
restored only where that value still stands; where it does not, somebody edited the field, and the edit wins.

So the round trip loses nothing by construction, whatever the two functions do, and there is no look-up and
no clock. A damaged or forged annotation counts as none.

The walk back is cheap where the functions hand on members as they are: what is the same object on both
sides is not looked into.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from apiserver.schema.annotations import (
    annotation_bytes,
    annotations_fit,
    take_annotation,
    with_annotation,
)
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kept import NOTHING_KEPT, Kept, kept_text, lost_fields, read_kept, restore
from apiserver.schema.undecoded import may_mention, opened

__all__ = ["Direction", "Kept", "annotation_bytes_wanted", "converted"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way between two versions.

    `convert` gets the object (without the annotation) and the source that the last conversion remembered; it
    must accept any JSON object. It returns a new one, and what the opposite function will need again.
    `is_alike` tells of a spec and a status, where nothing is kept, that `convert` leaves them alone both
    ways; it may miss some. `open` decodes those members of an undecoded object that `convert` looks into:
    what stays in one piece is compared at a glance.
    """

    api_version: str
    convert: Callable[[Json, Json], tuple[Json, Json]]
    is_alike: Callable[[JsonValue, JsonValue], bool]
    open: Callable[[Json, Json], Json] | None = None


def converted(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`; the input is left as it is.

    Neither function ever fails on a JSON object, whatever its shape. Members of `metadata`, `spec` and
    `status` may be undecoded (`msgspec.Raw`): what nobody has to look into is carried over as it is.
    What is to be kept and fits into no annotation is lost, for one object that fails would fail every list.
    """
    bare, remembered = _taken_apart(value, annotation)
    if remembered is NOTHING_KEPT and there.is_alike(bare.get("spec"), bare.get("status")):
        return bare | {"apiVersion": there.api_version}
    result, kept = _told_apart(bare, remembered, there, back)
    for candidate in (kept, _of_spec(kept)) if kept.fields or kept.source else ():
        text = kept_text(candidate)
        if not text:
            break
        annotated = with_annotation(result, annotation, text)
        if annotations_fit(annotated):
            return annotated
    return result


def annotation_bytes_wanted(value: Json, *, there: Direction, back: Direction, annotation: str) -> int:
    """Return how much all annotations would take in the version of `there` if nothing were lost."""
    result, kept = _told_apart(*_taken_apart(value, annotation), there, back)
    text = kept_text(kept)
    own = len(annotation.encode()) + len(text.encode()) if text else 0
    return annotation_bytes(result) + own


def _told_apart(bare: Json, kept: Kept, there: Direction, back: Direction) -> tuple[Json, Kept]:
    """Return the converted object, and what it cannot say."""
    if type(bare.get("metadata")) is msgspec.Raw:  # it is looked into several times
        bare = bare | {"metadata": opened(bare["metadata"])}
    if there.open is not None:
        bare = there.open(bare, kept.source)
    result, source = there.convert(bare, kept.source)
    result["apiVersion"] = there.api_version
    for field in kept.fields:
        restore(result, field)
    returned, _ = back.convert(result, source)
    return result, Kept(fields=lost_fields(bare, returned), source=source)


def _taken_apart(value: Json, annotation: str) -> tuple[Json, Kept]:
    """Return an object without the annotation, and what that keeps."""
    metadata = value.get("metadata")
    if not may_mention(metadata, annotation):
        return value, NOTHING_KEPT
    bare, text = take_annotation(value, annotation)
    return bare, read_kept(text, undecoded=type(metadata) is msgspec.Raw)


def _of_spec(kept: Kept) -> Kept:
    """Return what is kept of a spec: a status is written anew by whoever wrote it."""
    return Kept(fields=[field for field in kept.fields if field.path[0] == "spec"], source=kept.source)
