"""Conversion of one value to another version or shape by the webhook's own code, with notes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from apiserver.kinds.conversion import convert
from apiserver.kinds.llmd.conversion import ANNOTATION
from apiserver.kinds.llmd.shapes import Shape, in_shape, without_annotation
from apiserver.kinds.registry import find_kind
from apiserver.schema.conversion import KeptContent
from apiserver.schema.json import Json, JsonValue, as_object
from apiserver.schema.kind import Kind

_LIST: Final = "List"
_REMEMBERED: Final = frozenset({"modelProfile", "variantID"})
"""Fields that conversion remembers as a whole, because the values derived from them change with every
edit."""

_NAMELESS: Final = (
    "metadata.name is missing, so spec.scaleTargetRef.name, which defaults to it, is empty: set one of them"
)


class UnknownVersionError(Exception):
    """An object of a convertible kind has an unknown version."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversionOptions:
    """The target of a conversion: the version, optionally a shape, and whether to drop the annotation."""

    version: str
    shape: Shape | None = None
    drops_kept: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class ObjectNote:
    """A note on an object; `item` is its index if it is in a list."""

    text: str
    item: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Conversion:
    """A value after conversion, the number of convertible objects in it, and notes.

    A value of None is removed; `added` are further documents after it.
    """

    value: JsonValue
    count: int
    notes: tuple[ObjectNote, ...] = ()
    added: tuple[Json, ...] = ()

    @property
    def values(self) -> tuple[JsonValue, ...]:
        """Return the documents that are left."""
        return self.added if self.value is None else (self.value, *self.added)


def convert_value(value: JsonValue, options: ConversionOptions) -> Conversion:
    """Return a manifest in another version; other kinds are returned unchanged.

    A list is converted item by item. Raises UnknownVersionError.
    """
    if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
        return Conversion(value=value, count=0)
    kind = _convertible(value.get("apiVersion"), value["kind"])
    if kind is not None:
        return _object(value, kind, options)
    if value["kind"].endswith(_LIST) and isinstance(value.get("items"), list):
        return _list(value, options)
    return Conversion(value=value, count=0)


def _convertible(api_version: JsonValue, name: str) -> Kind | None:
    group, _, version = str(api_version).rpartition("/")
    kind = find_kind(group, name)
    if kind is None or not kind.has_conversion:
        return None
    versions = [item.name for item in kind.versions]
    if version not in versions:
        raise UnknownVersionError(
            f"{name} has no version {api_version}: its versions are {', '.join(versions)}"
        )
    return kind


def _object(value: Json, kind: Kind, options: ConversionOptions) -> Conversion:
    notes: list[str] = []
    if options.shape is not None:
        shaped = in_shape(value, options.shape)
        result = shaped.value
        notes += [f"lost: {sentence}" for sentence in shaped.lost]
        notes += [f"placeholder: {sentence}" for sentence in shaped.made_up]
    else:
        result = convert(value, f"{kind.group}/{options.version}")
        if result is not value:
            result = _tidy_annotation(result, options, notes)
    if _has_nameless_target(value, result):
        notes.append(_NAMELESS)
    label = _label(value, kind)
    return Conversion(
        value=result, count=1, notes=tuple(ObjectNote(text=f"{label}: {note}") for note in notes)
    )


def _label(value: Json, kind: Kind) -> str:
    name = as_object(value.get("metadata")).get("name")
    return kind.kind if name in (None, "") else f"{kind.kind}/{name}"


def _has_nameless_target(before: Json, after: Json) -> bool:
    target = as_object(after.get("spec")).get("scaleTargetRef")
    is_new = "scaleTargetRef" not in as_object(before.get("spec"))
    return is_new and isinstance(target, dict) and not target.get("name")


def _tidy_annotation(value: Json, options: ConversionOptions, notes: list[str]) -> Json:
    """Drop the annotation if requested, and note the fields that it keeps, or that are lost without it."""
    missing = [".".join(path) for path in kept_fields(value) if not has_field(value, path)]
    if options.drops_kept:
        notes += [f"lost: {path} does not exist in {options.version}" for path in missing]
        return without_annotation(value)
    if missing:
        what = f"{', '.join(missing)} kept in the annotation {ANNOTATION}"
        notes.append(f"{what}: {options.version} has no such field")
    return value


def kept_fields(value: Json) -> list[list[str]]:
    """Return the paths of the fields that the annotation of an object keeps, except absent ones."""
    text = as_object(as_object(value.get("metadata")).get("annotations")).get(ANNOTATION)
    if text is None:
        return []
    kept = msgspec.json.decode(text, type=KeptContent)
    fields = [field for field in kept.fields if field.value is not msgspec.UNSET]
    return [field.path for field in fields] + [["spec", name] for name in kept.source if name in _REMEMBERED]


def has_field(value: Json, path: Sequence[str]) -> bool:
    """Tell whether an object has a field."""
    within: JsonValue = value
    for name in path:
        if not isinstance(within, dict) or name not in within:
            return False
        within = within[name]
    return True


def _list(value: Json, options: ConversionOptions) -> Conversion:
    implied = _implied_members(value)
    version = str(value.get("apiVersion"))
    parts = [_item(item, implied, options) for item in value["items"]]
    result = value | {"items": [part.value for part in parts]}
    if implied and _convertible(version, implied["kind"]) is not None:
        result["apiVersion"] = f"{version.rpartition('/')[0]}/{options.version}"
    notes = (replace(note, item=item) for item, part in enumerate(parts) for note in part.notes)
    return Conversion(value=result, count=sum(part.count for part in parts), notes=tuple(notes))


def _implied_members(value: Json) -> Json:
    """Return the members that the items of a list of one kind may omit."""
    kind = value["kind"].removesuffix(_LIST)
    return {"apiVersion": value.get("apiVersion"), "kind": kind} if kind else {}


def _item(item: JsonValue, implied: Json, options: ConversionOptions) -> Conversion:
    if not isinstance(item, dict):
        return Conversion(value=item, count=0)
    part = convert_value(implied | item, options)
    added = [name for name in implied if name not in item]
    bare = {name: inner for name, inner in part.value.items() if name not in added}
    return Conversion(value=bare, count=part.count, notes=part.notes)
