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

from apiserver.schema.annotations import LIMIT_BYTES, annotation_bytes, take_annotation, with_annotation
from apiserver.schema.json import Json
from apiserver.schema.kept import Kept, kept_text, lost_fields, read_kept, restore

__all__ = ["Direction", "Kept", "annotation_bytes_wanted", "convert_object"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One direction of conversion between two versions.

    `convert` takes the object without the annotation, and the source that the last conversion remembered; it
    must accept any JSON object. It returns a new object, and the source that the opposite direction will
    need.
    """

    api_version: str
    convert: Callable[[Json, Json], tuple[Json, Json]]


def convert_object(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`, without changing the input.

    Never fails on a JSON object, whatever its shape. What exceeds the size limit of annotations is lost: one
    object that failed to convert would make every list fail.
    """
    result, kept = _told_apart(value, there, back, annotation)
    for candidate in (kept, _of_spec(kept)) if kept.fields or kept.source else ():
        text = kept_text(candidate)
        if not text:
            break
        annotated = with_annotation(result, annotation, text)
        if annotation_bytes(annotated) <= LIMIT_BYTES:
            return annotated
    return result


def annotation_bytes_wanted(value: Json, *, there: Direction, back: Direction, annotation: str) -> int:
    """Return the size in bytes of all annotations in the version of `there` if nothing were lost."""
    result, kept = _told_apart(value, there, back, annotation)
    text = kept_text(kept)
    own = len(annotation.encode()) + len(text.encode()) if text else 0
    return annotation_bytes(result) + own


def _told_apart(value: Json, there: Direction, back: Direction, annotation: str) -> tuple[Json, Kept]:
    """Return the converted object, and what its version cannot express."""
    bare, text = take_annotation(value, annotation)
    remembered = read_kept(text)
    result, source = there.convert(bare, remembered.source)
    result["apiVersion"] = there.api_version
    for field in remembered.fields:
        restore(result, field)
    returned, _ = back.convert(result, source)
    return result, Kept(fields=lost_fields(bare, returned), source=source)


def _of_spec(kept: Kept) -> Kept:
    """Return the kept fields of the spec only: the status is rewritten by its writer."""
    return Kept(fields=[field for field in kept.fields if field.path[0] == "spec"], source=kept.source)
