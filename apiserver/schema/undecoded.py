"""JSON members that stay encoded (`msgspec.Raw`) until they are needed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue

_RAW: Final = msgspec.Raw
_decode: Final = msgspec.json.Decoder().decode
_decode_objects: Final = msgspec.json.Decoder(list[dict[str, msgspec.Raw]]).decode
_decode_members: Final = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_encode: Final = msgspec.json.Encoder().encode
_DIGITS_ALIKE: Final = bytes.maketrans(b"123456789E", b"000000000e")
_LARGE_EXPONENT: Final = b"0e000"
_ESCAPE: Final = b"\\"
_LONG_NUMBER: Final = b"0" * 200


def plain(value: JsonValue) -> JsonValue:
    """Return a value decoded; members of an already decoded value may stay undecoded."""
    return _decode(value) if type(value) is _RAW else value


def opened(value: JsonValue) -> JsonValue:
    """Return an undecoded object decoded one level deep, any other value decoded completely."""
    if type(value) is not _RAW:
        return value
    try:
        return _decode_members(value)
    except msgspec.ValidationError:  # not an object
        return _decode(value)


def opened_objects(value: JsonValue) -> JsonValue:
    """Return an undecoded list of objects with each decoded one level deep; any other value unchanged."""
    if type(value) is not _RAW:
        return value
    try:
        return _decode_objects(value)
    except msgspec.ValidationError:
        return value


def as_object(value: JsonValue) -> Json:
    """Return a value if it is an object, decoded one level deep; otherwise an empty object."""
    if type(value) is dict:
        return value
    found = opened(value)
    return found if isinstance(found, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a value decoded if it is a list; otherwise an empty list."""
    if type(value) is list:
        return value
    found = plain(value)
    return found if isinstance(found, list) else []


def sealed(value: JsonValue) -> msgspec.Raw:
    """Return a value encoded, for small values of our own that are to be compared with encoded ones."""
    return _RAW(_encode(value))


def without(value: Json, names: Iterable[str]) -> Json:
    """Return an object without some of its members."""
    rest = dict(value)
    for name in names:
        rest.pop(name, None)
    return rest


def may_mention(value: JsonValue, name: str) -> bool:
    """Tell whether a name may occur in a value; False is certain. Fast for encoded text."""
    if type(value) is not _RAW:
        return True
    text = bytes(value)  # `find` is several times faster than `in` for bytes
    return text.find(name.encode()) >= 0 or text.find(_ESCAPE) >= 0


def may_exceed_numbers(text: str) -> bool:
    """Tell whether JSON text may have a number out of range, the only error that encoded text can hide.

    A number with a two-digit exponent and fewer than two hundred digits is never out of range.
    """
    alike = text.encode().translate(_DIGITS_ALIKE, b"+-")
    return alike.find(_LARGE_EXPONENT) >= 0 or alike.find(_LONG_NUMBER) >= 0


def same(one: JsonValue, other: JsonValue) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1 and 1.0 is not 1."""
    if one is other:
        return True
    if type(one) is _RAW or type(other) is _RAW:
        return (type(one) is type(other) and one == other) or same(plain(one), plain(other))
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
