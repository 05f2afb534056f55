"""Two writes that must not come apart: a spec in another shape, and the status that belongs to it.

A status is written by itself, and the shape of a spec may be told from the old one. So the write of the spec
carries the status that is to follow in an annotation; whoever is interrupted in between finds it there.
"""

from __future__ import annotations

import hashlib
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import as_object

ANNOTATION: Final = "llmd.ai/status-to-come"

_encode: Final = msgspec.json.Encoder(order="deterministic").encode


class _ToCome(msgspec.Struct, frozen=True):
    status: JsonValue
    instead: str
    """Digest of the status that it replaces: one that is neither was written by somebody else since."""


def announcing(value: Json, status: JsonValue) -> Json:
    """Return an object that still has this status, announcing the one that it has in `value`."""
    text = _encode(_ToCome(status=value.get("status"), instead=_digest(status))).decode()
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations")) | {ANNOTATION: text}
    return value | {"metadata": metadata | {"annotations": annotations}}


def resumed(value: Json) -> Json:
    """Return an object as it is once the status that it announces has come; without any, the same."""
    metadata = as_object(value.get("metadata"))
    annotations = as_object(metadata.get("annotations"))
    if ANNOTATION not in annotations:
        return value
    others = {name: text for name, text in annotations.items() if name != ANNOTATION}
    bare = {name: item for name, item in metadata.items() if name != "annotations"}
    plain = value | {"metadata": bare | ({"annotations": others} if others else {})}
    try:
        to_come = msgspec.json.decode(str(annotations[ANNOTATION]), type=_ToCome)
    except msgspec.DecodeError:  # not by us
        return plain
    if to_come.status is None or to_come.instead != _digest(value.get("status")):
        return plain
    return plain | {"status": to_come.status}


def _digest(status: JsonValue) -> str:
    return hashlib.sha256(_encode(status)).hexdigest()
