"""Lossless conversion between two versions, out of two functions that each may lose something.

A pair of versions declares two total functions, one for each direction. What the way there and back would
lose is found by walking it: the returned object is compared with the original, and each field that differs
is kept in one annotation, *beside the value that came back instead*. On the real way back a kept field is
restored only where that value still stands; where it does not, somebody edited the field, and the edit wins.

So the round trip loses nothing by construction, whatever the two functions do, and there is no look-up and
no clock. A damaged or forged annotation counts as none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from apiserver.schema.annotations import (
    annotation_bytes,
    annotations_fit,
    annotations_of,
    take_annotation,
    with_annotation,
)
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.undecoded import mentions, opened, same

_CONVERTED: Final = ("spec", "status")
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


_NOTHING_KEPT: Final = Kept()
_kept: Final = msgspec.json.Decoder(Kept)
_undecoded: Final = msgspec.json.Decoder(_Undecoded)
_encode: Final = msgspec.json.Encoder().encode


@dataclass(frozen=True, kw_only=True, slots=True)
class Direction:
    """One way between two versions.

    `convert` gets the object (without the annotation) and the source that the last conversion remembered; it
    must accept any JSON object, and returns a new one. `remember` returns what the opposite function will
    need again. `open` decodes those members of an undecoded object that `convert` looks into: what stays in
    one piece is compared at a glance.
    """

    api_version: str
    convert: Callable[[Json, Json], Json]
    remember: Callable[[Json], Json] | None = None
    open: Callable[[Json, Json], Json] | None = None


def converted(value: Json, *, there: Direction, back: Direction, annotation: str) -> Json:
    """Return an object in the version of `there`; the input is left as it is.

    Neither function ever fails on a JSON object, whatever its shape. Members of `metadata`, `spec` and
    `status` may be undecoded (`msgspec.Raw`): what nobody has to look into is carried over as it is.
    What is to be kept and fits into no annotation is lost, for one object that fails would fail every list.
    """
    result, kept = _told_apart(value, there, back, annotation)
    for candidate in (kept, _of_spec(kept)):
        if not (candidate.fields or candidate.source):
            break
        annotated = with_annotation(result, annotation, _encode(candidate).decode())
        if annotations_fit(annotated):
            return annotated
    return result


def annotation_bytes_wanted(value: Json, *, there: Direction, back: Direction, annotation: str) -> int:
    """Return how much all annotations would take in the version of `there` if nothing were lost."""
    result, kept = _told_apart(value, there, back, annotation)
    own = len(annotation.encode()) + len(_encode(kept)) if kept.fields or kept.source else 0
    return annotation_bytes(result) + own


def _told_apart(value: Json, there: Direction, back: Direction, annotation: str) -> tuple[Json, Kept]:
    """Return the converted object, and what it cannot say."""
    bare, kept = value, _NOTHING_KEPT
    if mentions(annotations_of(value.get("metadata")), annotation):
        bare, text = take_annotation(value, annotation)
        kept = _decoded(text, undecoded=type(value["metadata"]) is msgspec.Raw)
    if there.open is not None:
        bare = there.open(bare, kept.source)
    result = _converted(bare, kept, there)
    result["apiVersion"] = there.api_version
    source = there.remember(bare) if there.remember is not None else {}
    returned = _converted(result, Kept(source=source) if source else _NOTHING_KEPT, back)
    lost: list[KeptField] = []
    for name in _CONVERTED:
        original, came_back = bare.get(name, _ABSENT), returned.get(name, _ABSENT)
        if original is not came_back:
            _collect_differences(original, came_back, [name], lost)
    return result, Kept(fields=lost, source=source)


def _of_spec(kept: Kept) -> Kept:
    """Return what is kept of a spec: a status is written anew by whoever wrote it."""
    return Kept(fields=[field for field in kept.fields if field.path[0] == "spec"], source=kept.source)


def _converted(bare: Json, kept: Kept, direction: Direction) -> Json:
    result = direction.convert(bare, kept.source)
    for field in kept.fields:
        if field.path and field.path[0] in _CONVERTED:
            result = _restored(result, field, 0)
    return result


def _decoded(text: JsonValue, *, undecoded: bool) -> Kept:
    if not isinstance(text, str):
        return _NOTHING_KEPT
    try:
        kept = _kept.decode(text)  # whole, first: no value in it may turn out to be none later
        return _undecoded.decode(text) if undecoded else kept
    except (msgspec.DecodeError, RecursionError):
        # Somebody damaged it. Conversion sits in every read, so what is left still has to convert.
        return _NOTHING_KEPT


def _collect_differences(
    original: JsonValue, returned: JsonValue, path: list[str], lost: list[KeptField]
) -> None:
    if type(original) is not dict or type(returned) is not dict:
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


def _restored(value: Json, field: KeptField, depth: int) -> Json:
    name = field.path[depth]
    if depth + 1 < len(field.path):
        child = opened(value.get(name))
        return value | {name: _restored(child, field, depth + 1)} if isinstance(child, dict) else value
    if not same(value.get(name, _ABSENT), field.derived):
        return value
    if field.value is not _ABSENT:
        return value | {name: field.value if depth else opened(field.value)}
    return {key: item for key, item in value.items() if key != name}
