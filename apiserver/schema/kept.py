"""What conversion keeps of an object beside it: fields that differ, and how they are found and restored."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import may_exceed_numbers, opened, same

CONVERTED: Final = ("spec", "status")
"""The members of an object that conversion may change; all others are carried over."""

_ABSENT: Final = msgspec.UNSET


class KeptField(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that the other version cannot say: its value, and what comes back instead; unset is absent."""

    path: list[str]
    value: JsonValue = msgspec.UNSET
    derived: JsonValue = msgspec.UNSET


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that an object of the other version said beyond what this version can."""

    fields: Sequence[KeptField] = ()
    source: Json = msgspec.field(default_factory=dict)


class _UndecodedField(KeptField, frozen=True):
    value: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET
    derived: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


class _Undecoded(Kept, frozen=True):
    """The same with undecoded values, for objects that are undecoded themselves."""

    fields: Sequence[_UndecodedField] = ()
    source: dict[str, msgspec.Raw] = msgspec.field(default_factory=dict)


NOTHING_KEPT: Final = Kept()
"""Of an object that the other version can say in full."""

_decode: Final = msgspec.json.Decoder(Kept).decode
_decode_undecoded: Final = msgspec.json.Decoder(_Undecoded).decode
_encode: Final = msgspec.json.Encoder().encode


def read_kept(text: JsonValue, *, undecoded: bool) -> Kept:
    """Return what the text of an annotation keeps; nothing if somebody damaged it."""
    if not isinstance(text, str):
        return NOTHING_KEPT
    try:
        if not undecoded:
            return _decode(text)
        if may_exceed_numbers(text):
            _decode(text)  # no value in it may turn out to be none later
        return _decode_undecoded(text)
    except (msgspec.DecodeError, RecursionError):
        # Conversion sits in every read, so what is left still has to convert.
        return NOTHING_KEPT


def kept_text(kept: Kept) -> str:
    """Return the text of an annotation that keeps all this; empty for nothing."""
    return _encode(kept).decode() if kept.fields or kept.source else ""


def restore(value: Json, field: KeptField) -> None:
    """Put a kept field into an object unless it was edited; no more than the object itself is changed."""
    if not field.path or field.path[0] not in CONVERTED:
        return
    holder, (*outer, name) = value, field.path
    for part in outer:
        inner = opened(holder.get(part))
        if not isinstance(inner, dict):
            return
        holder[part] = dict(inner)
        holder = holder[part]
    if not same(holder.get(name, _ABSENT), field.derived):
        return
    if field.value is _ABSENT:
        holder.pop(name, None)
    else:
        holder[name] = field.value if outer else opened(field.value)


def lost_fields(original: Json, returned: Json) -> list[KeptField]:
    """Return the fields in which an object differs from what came back of it."""
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
        if original is _ABSENT or returned is _ABSENT:
            lost.append(KeptField(path, original, returned))
            return
        if same(original, returned):
            return
        original, returned = opened(original), opened(returned)
        if type(original) is not dict or type(returned) is not dict:
            lost.append(KeptField(path, original, returned))
            return
    for name, was in original.items():
        came_back = returned.get(name, _ABSENT)
        if was is not came_back:
            _collect_differences(was, came_back, [*path, name], lost)
    for name, came_back in returned.items():
        if name not in original:
            lost.append(KeptField([*path, name], _ABSENT, came_back))
