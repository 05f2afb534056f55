"""The fields that conversion keeps in an annotation: how they are found, encoded and restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue, same

CONVERTED: Final = ("spec", "status")
"""The members of an object that conversion may change; all others are carried over."""

_ABSENT: Final = msgspec.UNSET


class KeptField(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that the other version cannot express: its value, and the value that converting back yields."""

    path: list[str]
    value: JsonValue = msgspec.UNSET
    derived: JsonValue = msgspec.UNSET


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """Everything in an object that its other version cannot express."""

    fields: Sequence[KeptField] = ()
    source: Json = msgspec.field(default_factory=dict)


NOTHING_KEPT: Final = Kept()
"""The value for an object that the other version can express completely."""

_decode: Final = msgspec.json.Decoder(Kept).decode
_encode: Final = msgspec.json.Encoder().encode


def read_kept(text: JsonValue) -> Kept:
    """Return the decoded value of an annotation; `NOTHING_KEPT` if it is invalid."""
    if not isinstance(text, str):
        return NOTHING_KEPT
    try:
        return _decode(text)
    except (msgspec.DecodeError, RecursionError):
        # Conversion is part of every read, so the rest of the object must still convert.
        return NOTHING_KEPT


def kept_text(kept: Kept) -> str:
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
