"""Lossless conversion between two versions, out of two functions that each may lose something.

A pair of versions declares two total functions, one for each direction. What the way there and back would
lose is found by walking it: the returned object is compared with the original, and each field that differs
is kept in one annotation, *beside the value that came back instead*. On the real way back a kept field is
restored only where that value still stands; where it does not, somebody edited the field, and the edit wins.

So the round trip loses nothing by construction, whatever the two functions do, and there is no look-up and
no clock. A damaged or forged annotation counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.json import Json, JsonValue

_UNTOUCHED: Final = frozenset({"apiVersion", "kind", "metadata"})
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way between two versions.

    `convert` gets the object (without the annotation) and the source that the last conversion remembered;
    it must accept any JSON object. `remember` returns what the opposite function will need again.
    `complete` mends what restoring kept fields could have left undone.
    """

    api_version: str
    convert: Callable[[Json, Json], Json]
    remember: Callable[[Json], Json] = lambda _: {}
    complete: Callable[[Json, Json], Json] = lambda result, _: result


def converted(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`; the input is left as it is.

    Neither function ever fails on a JSON object, whatever its shape.
    """
    plain, kept = _split(value, annotation)
    result = _converted(plain, kept, there)
    source = there.remember(plain)
    returned = _converted(result, Kept(source=source), back)
    lost = list(_differences(plain, returned, ()))
    return _annotated(result, Kept(fields=lost, source=source), annotation)


def _converted(plain: Json, kept: Kept, direction: Direction) -> Json:
    result = direction.convert(plain, kept.source) | {"apiVersion": direction.api_version}
    for field in kept.fields:
        result = _restored(result, field)
    return direction.complete(result, plain)


def _split(value: Json, annotation: str) -> tuple[Json, Kept]:
    metadata = value.get("metadata")
    if not isinstance(metadata, dict):
        return value, Kept()
    annotations = metadata.get("annotations")
    if not isinstance(annotations, dict) or annotation not in annotations:
        return value, Kept()
    others = {key: item for key, item in annotations.items() if key != annotation}
    bare = {key: item for key, item in metadata.items() if key != "annotations"}
    plain = value | {"metadata": bare | ({"annotations": others} if others else {})}
    return plain, _decoded(annotations[annotation])


def _decoded(text: JsonValue) -> Kept:
    try:
        return msgspec.json.decode(text, type=Kept) if isinstance(text, str) else Kept()
    except (msgspec.DecodeError, RecursionError):
        # Somebody damaged it. Conversion sits in every read, so what is left still has to convert.
        return Kept()


def _annotated(value: Json, kept: Kept, annotation: str) -> Json:
    if not kept.fields and not kept.source:
        return value
    metadata = value.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    annotations = metadata.get("annotations")
    annotations = annotations if isinstance(annotations, dict) else {}
    text = msgspec.json.encode(kept).decode()
    return value | {"metadata": metadata | {"annotations": annotations | {annotation: text}}}


def _differences(original: Json, returned: Json, path: tuple[str, ...]) -> Iterator[KeptField]:
    for name in [*original, *(name for name in returned if name not in original)]:
        if not path and name in _UNTOUCHED:
            continue
        was, came_back = original.get(name, _ABSENT), returned.get(name, _ABSENT)
        if isinstance(was, dict) and isinstance(came_back, dict):
            yield from _differences(was, came_back, (*path, name))
        elif not same(was, came_back):
            yield KeptField([*path, name], was, came_back)


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
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
