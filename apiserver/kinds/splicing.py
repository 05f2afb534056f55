"""Conversion of objects as JSON text, without decoding what conversion does not change.

A conversion review may hold thousands of objects, and each conversion is part of a client's read. Conversion
moves members of spec and status and inspects few of them, so members stay encoded until it needs them.
`apiserver.kinds.conversion` does the conversion itself. Each object is encoded again before the next one is
decoded, so that the garbage collector finds no objects to traverse.
"""

from __future__ import annotations

from typing import Final

import msgspec
from msgspec import UNSET, Raw, UnsetType

from apiserver.kinds.conversion import convert
from apiserver.schema.json import Json

_Members = dict[str, Raw]


class _Object(msgspec.Struct, gc=False, forbid_unknown_fields=True):
    """An object from an API server. Any other is decoded whole, see `convert_text`."""

    apiVersion: str  # noqa: N815 (the JSON name)
    kind: str
    metadata: Raw
    spec: _Members
    status: _Members | UnsetType = UNSET


_object: Final = msgspec.json.Decoder(_Object)
_decode: Final = msgspec.json.Decoder().decode
_encode: Final = msgspec.json.Encoder().encode


def convert_text(text: Raw, api_version: str) -> Raw:
    """Return an object, given as JSON text, in another version.

    Raises KeyError for a kind or version without a converter, ValueError for text that is no object.
    """
    try:
        found = _object.decode(text)
    except msgspec.ValidationError:
        return _converted_whole(text, api_version)
    if found.apiVersion == api_version:
        return text
    value: Json = {
        "apiVersion": found.apiVersion,
        "kind": found.kind,
        "metadata": found.metadata,
        "spec": found.spec,
    }
    if found.status is not UNSET:
        value["status"] = found.status
    return Raw(_encode(convert(value, api_version)))


def _converted_whole(text: Raw, api_version: str) -> Raw:
    value = _decode(text)
    if not isinstance(value, dict):
        raise ValueError("it is no object")  # noqa: TRY004 (an invalid value, not a wrong Python type)
    return Raw(_encode(convert(value, api_version)))
