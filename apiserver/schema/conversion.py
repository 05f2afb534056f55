"""Lossless conversion between two versions, out of two functions that each may lose something.

A pair of versions declares two total functions, one for each direction. What the way there and back would
lose is found by walking it: the returned object is compared with the original, and each field that differs
is kept in one annotation, *beside the value that came back instead*. On the real way back a kept field is
restored only where that value still stands; where it does not, somebody edited the field, and the edit wins.

So the round trip loses nothing by construction, whatever the two functions do, and there is no look-up and
no clock. A damaged or forged annotation counts as none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue

_UNTOUCHED: Final = frozenset({"apiVersion", "kind", "metadata"})
_CONVERTED: Final = ("spec", "status")
_ABSENT: Final = msgspec.UNSET


class KeptField(msgspec.Struct, frozen=True, omit_defaults=True):
    """A field that the other version cannot say: its value, and what comes back instead; unset is absent."""

    path: list[str]
    value: JsonValue = msgspec.UNSET
    derived: JsonValue = msgspec.UNSET


class Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """All that an object of the other version said beyond what this version can."""

    fields: list[KeptField] = msgspec.field(default_factory=list)
    source: Json = msgspec.field(default_factory=dict)


_NOTHING_KEPT: Final = Kept()
_RAW: Final = msgspec.Raw
_kept: Final = msgspec.json.Decoder(Kept)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way between two versions.

    `convert` gets the object (without the annotation) and the source that the last conversion remembered; it
    must accept any JSON object, and returns a new one. `remember` returns what the opposite function will
    need again. `complete` mends what restoring kept fields could have left undone.
    """

    api_version: str
    convert: Callable[[Json, Json], Json]
    remember: Callable[[Json], Json] | None = None
    complete: Callable[[Json, Json], Json] | None = None


def converted(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`; the input is left as it is.

    Neither function ever fails on a JSON object, whatever its shape. Members of `status` may be undecoded
    (`msgspec.Raw`): they are carried over as they are.
    """
    plain, kept = _split(value, annotation)
    result = _converted(plain, kept, there)
    result["apiVersion"] = there.api_version
    source = there.remember(plain) if there.remember else {}
    returned = _converted(result, Kept(source=source) if source else _NOTHING_KEPT, back)
    lost: list[KeptField] = []
    for name in _CONVERTED:
        original, came_back = plain.get(name, _ABSENT), returned.get(name, _ABSENT)
        if original is not came_back:
            _collect_differences(original, came_back, [name], lost)
    if lost or source:
        _annotate(result, Kept(fields=lost, source=source), annotation)
    return result


def _converted(plain: Json, kept: Kept, direction: Direction) -> Json:
    result = direction.convert(plain, kept.source)
    for field in kept.fields:
        result = _restored(result, field)
    return direction.complete(result, plain) if direction.complete else result


def _split(value: Json, annotation: str) -> tuple[Json, Kept]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return value, _NOTHING_KEPT
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or annotation not in annotations:
        return value, _NOTHING_KEPT
    others = {key: item for key, item in annotations.items() if key != annotation}
    bare = {key: item for key, item in metadata.items() if key != "annotations"}
    plain = value | {"metadata": bare | ({"annotations": others} if others else {})}
    return plain, _decoded(annotations[annotation])


def _decoded(text: JsonValue) -> Kept:
    try:
        return _kept.decode(text) if isinstance(text, str) else _NOTHING_KEPT
    except (msgspec.DecodeError, RecursionError):
        # Somebody damaged it. Conversion sits in every read, so what is left still has to convert.
        return _NOTHING_KEPT


def _annotate(value: Json, kept: Kept, annotation: str) -> None:
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    annotations = metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    value["metadata"] = metadata | {"annotations": annotations | {annotation: _encode(kept).decode()}}


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


def _restored(value: Json, field: KeptField) -> Json:
    if not field.path or field.path[0] in _UNTOUCHED:
        return value
    name, *rest = field.path
    if rest:
        child = value.get(name)
        if not isinstance(child, dict):
            return value
        return value | {name: _restored(child, KeptField(rest, field.value, field.derived))}
    if not same(value.get(name, _ABSENT), field.derived):
        return value
    others = {key: item for key, item in value.items() if key != name}
    return others if field.value is _ABSENT else value | {name: field.value}


def same(one: JsonValue, other: JsonValue) -> bool:
    """Tell whether two JSON values are the same; unlike Python, true is not 1 and 1.0 is not 1."""
    if one is other:
        return True
    if type(one) is not type(other):
        return _RAW in (type(one), type(other)) and same(_plain(one), _plain(other))
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(_plain(one) == _plain(other))


def _plain(value: JsonValue) -> JsonValue:
    return msgspec.json.decode(value) if type(value) is _RAW else value
