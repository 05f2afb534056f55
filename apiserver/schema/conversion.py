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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.metadata import LIMIT_BYTES, annotation_bytes, take_annotation, with_annotation

CONVERTED: Final = ("spec", "status")
"""The members of an object that conversion may change; all others are carried over."""

_ABSENT: Final = msgspec.UNSET


class KeptField(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that the other version cannot express: its value, and the value that converting back yields."""

    path: list[str]
    value: JsonValue = msgspec.UNSET
    derived: JsonValue = msgspec.UNSET


class KeptContent(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything in an object that its other version cannot express."""

    fields: Sequence[KeptField] = ()
    source: Json = msgspec.field(default_factory=dict)


NOTHING_KEPT: Final = KeptContent()
"""The value for an object that the other version can express completely."""

_decode: Final = msgspec.json.Decoder(KeptContent).decode
_encode: Final = msgspec.json.Encoder().encode


def read_kept(text: JsonValue) -> KeptContent:
    """Return the decoded value of an annotation; `NOTHING_KEPT` if it is invalid."""
    if not isinstance(text, str):
        return NOTHING_KEPT
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        # Conversion is part of every read, so the rest of the object must still convert.
        return NOTHING_KEPT


def kept_text(kept: KeptContent) -> str:
    """Return the annotation value that keeps all of `kept`; empty if there is nothing to keep."""
    return _encode(kept).decode() if kept.fields or kept.source else ""


def restore(value: Json, field: KeptField) -> None:
    """Restore a kept field unless it was edited; changes no object but `value` itself."""
    if not field.path or field.path[0] not in CONVERTED:
        return
    holder, (*outer, name) = value, field.path
    for part in outer:
        inner = holder.get(part)
        if not isinstance(inner, dict):
            return
        holder[part] = dict(inner)
        holder = holder[part]
    if not same(holder.get(name, _ABSENT), field.derived):
        return
    if field.value is _ABSENT:
        holder.pop(name, None)
    else:
        holder[name] = field.value


def lost_fields(original: Json, returned: Json) -> list[KeptField]:
    """Return the fields in which an object differs from the result of converting it there and back."""
    lost: list[KeptField] = []
    for name in CONVERTED:
        was, came_back = original.get(name, _ABSENT), returned.get(name, _ABSENT)
        if was is not came_back:
            _collect_differences(was, came_back, [name], lost)
    return lost


def _collect_differences(
    original: JsonValue, returned: JsonValue, path: list[str], lost: list[KeptField]
) -> None:
    if type(original) is not dict or type(returned) is not dict:
        if not same(original, returned):
            lost.append(KeptField(path, original, returned))
        return
    for name, was in original.items():
        came_back = returned.get(name, _ABSENT)
        if was is not came_back:
            _collect_differences(was, came_back, [*path, name], lost)
    for name, came_back in returned.items():
        if name not in original:
            lost.append(KeptField([*path, name], _ABSENT, came_back))


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionDirection:
    """One direction of conversion between two versions.

    `convert` takes the object without the annotation, and the source that the last conversion remembered; it
    must accept any JSON object. It returns a new object, and the source that the opposite direction will
    need.
    """

    api_version: str
    convert: Callable[[Json, Json], tuple[Json, Json]]


def convert_object(
    value: Json, *, there: ConversionDirection, back: ConversionDirection, annotation: str
) -> Json:
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


def annotation_bytes_wanted(
    value: Json, *, there: ConversionDirection, back: ConversionDirection, annotation: str
) -> int:
    """Return the size in bytes of all annotations in the version of `there` if nothing were lost."""
    result, kept = _told_apart(value, there, back, annotation)
    text = kept_text(kept)
    own = len(annotation.encode()) + len(text.encode()) if text else 0
    return annotation_bytes(result) + own


def _told_apart(
    value: Json, there: ConversionDirection, back: ConversionDirection, annotation: str
) -> tuple[Json, KeptContent]:
    """Return the converted object, and what its version cannot express."""
    bare, text = take_annotation(value, annotation)
    remembered = read_kept(text)
    result, source = there.convert(bare, remembered.source)
    result["apiVersion"] = there.api_version
    # What the last conversion kept is restored first, so that converting back only shows what is lost now.
    for field in remembered.fields:
        restore(result, field)
    returned, _ = back.convert(result, source)
    return result, KeptContent(fields=lost_fields(bare, returned), source=source)


def _of_spec(kept: KeptContent) -> KeptContent:
    """Return the kept fields of the spec only: the status is rewritten by its writer."""
    return KeptContent(fields=[field for field in kept.fields if field.path[0] == "spec"], source=kept.source)
