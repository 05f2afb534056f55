"""Lossless conversion between two versions, built from two functions that may each be lossy.

A pair of versions declares two total functions, one for each direction. The loss is found by converting there
and back: each field in which the result differs from the original is kept in an annotation, *together with
the value that came back instead*. When the object is really converted back, a kept field is restored only if
it still has that value; otherwise a user has edited the field, and the edit takes precedence.

The round trip is therefore lossless by construction, without lookups and without a clock, provided that each
function drops what the other version does not declare: the API server would drop it after the conversion.
An invalid or forged annotation is ignored.

Converting back is cheap if the functions pass on members unchanged: values that are the same Python object on
both sides are not compared further.
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
    """One direction of conversion between two versions.

    `convert` takes the object without the annotation, and the source that the last conversion remembered; it
    must accept any JSON object. It returns a new object, and the source that the opposite direction will
    need. `is_alike` tells from spec and status whether `convert` would change neither in both directions,
    given that nothing is kept; it may return False if so. `open` decodes those members of an undecoded object
    that `convert` inspects; the others stay encoded and are cheap to compare.
    """

    api_version: str
    convert: Callable[[Json, Json], tuple[Json, Json]]
    is_alike: Callable[[JsonValue, JsonValue], bool]
    open: Callable[[Json, Json], Json] | None = None


def converted(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`, without changing the input.

    Neither function ever fails on a JSON object, whatever its shape. Members of `metadata`, `spec` and
    `status` may be undecoded (`msgspec.Raw`) and stay so unless they must be inspected. What exceeds the size
    limit of annotations is lost: one object that failed to convert would make every list fail.
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
    """Return the size in bytes of all annotations in the version of `there` if nothing were lost."""
    result, kept = _told_apart(*_taken_apart(value, annotation), there, back)
    text = kept_text(kept)
    own = len(annotation.encode()) + len(text.encode()) if text else 0
    return annotation_bytes(result) + own


def _told_apart(bare: Json, kept: Kept, there: Direction, back: Direction) -> tuple[Json, Kept]:
    """Return the converted object, and what its version cannot express."""
    if type(bare.get("metadata")) is msgspec.Raw:  # it is inspected several times
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
    """Return an object without the annotation, and the decoded content of the annotation."""
    metadata = value.get("metadata")
    if not may_mention(metadata, annotation):
        return value, NOTHING_KEPT
    bare, text = take_annotation(value, annotation)
    return bare, read_kept(text, undecoded=type(metadata) is msgspec.Raw)


def _of_spec(kept: Kept) -> Kept:
    """Return the kept fields of the spec only: the status is rewritten by its writer."""
    return Kept(fields=[field for field in kept.fields if field.path[0] == "spec"], source=kept.source)
