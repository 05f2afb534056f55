"""Comparison of a raw value with its declared shape, and its truncation to that shape.

A manifest may hold megabytes where a declaration allows a name. Before errors are listed, an invalid value is
truncated to its bounds: a text that is too long or of another type gets only that error; of a list or map
that is too long, only the entries within its limit are validated. Undeclared members are dropped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import UnionType
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import TYPE_WORDS, FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import SchemaNode
from apiserver.schema.paths import FieldPath


class Blank(str):
    """The empty text that replaces a value of a wrong type; it is recognizable by its class."""

    __slots__ = ()


_EMPTY: Final[Mapping[str, Callable[[], JsonValue]]] = {
    "object": dict,
    "array": list,
    "string": Blank,
    "integer": lambda: math.nan,
    "number": lambda: math.nan,
    "boolean": bool,
    "int-or-string": str,
}
"""What replaces a value of a wrong type before rules are evaluated, by the declared type."""

_TYPES: Final[Mapping[str, type | UnionType]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int | float,
    "boolean": bool,
    "int-or-string": int | str,
    "any": object,
}

NESTING: Final = frozenset({dict, list})
"""The types of values that have others inside."""

DEEPEST: Final = 64
"""The maximum depth of a declared object. Deeper values could exhaust the stack of recursive functions."""

FREE_LEVELS: Final = 100
"""The maximum depth of free JSON. JSON decoders fail somewhere below a thousand levels."""


def is_deeper_than(value: JsonValue, levels: int) -> bool:
    """Tell whether a value is nested deeper than a number of levels, without recursion."""
    nested = [value] if type(value) in NESTING else []
    for _ in range(levels):
        nested = [
            inner
            for item in nested
            for inner in (item.values() if type(item) is dict else item)
            if type(inner) in NESTING
        ]
        if not nested:
            return False
    return any(nested)


def without_nulls(node: SchemaNode, value: JsonValue) -> JsonValue:
    """Return a value without declared members that are null, which the API server prunes.

    Nulls inside lists and inside free JSON are kept.
    """
    if isinstance(value, dict) and node.values is not None:
        return {key: without_nulls(node.values, item) for key, item in value.items() if item is not None}
    if isinstance(value, dict) and (known := node.by_name):
        return {
            key: without_nulls(known[key].node, item) if type(item) in NESTING and key in known else item
            for key, item in value.items()
            if item is not None
        }
    if isinstance(value, list) and node.items is not None:
        return [without_nulls(node.items, item) for item in value]
    return value


def well_typed(node: SchemaNode, value: JsonValue) -> JsonValue:
    """Return a value in which everything has its declared JSON type, so that rules need no type checks.

    A value of another type, or a number beyond the width of its type, is replaced by an empty value of the
    declared type, so that it still counts as set. An empty number is NaN, for which no comparison holds.
    """
    if isinstance(value, dict) and node.values is not None:
        return {key: _fit(node.values, item) for key, item in value.items()}
    if isinstance(value, dict) and (known := node.by_name):
        return {key: _fit(known[key].node, item) if key in known else item for key, item in value.items()}
    if isinstance(value, list) and node.items is not None:
        return [_fit(node.items, item) for item in value]
    return value


def is_typed(node: SchemaNode, value: JsonValue) -> bool:
    """Tell whether a value has the declared JSON type; an integral float is an integer."""
    if isinstance(value, bool):
        return node.type in {"boolean", "any"}
    if isinstance(value, float) and value.is_integer():
        return node.type in {"integer", "int-or-string", "number", "any"}
    return isinstance(value, _TYPES[node.type])


def _fit(node: SchemaNode, value: JsonValue) -> JsonValue:
    if is_typed(node, value):
        if type(value) in NESTING:
            return well_typed(node, value)
        if isinstance(value, str) or not (bounds := node.bounds):
            return value
        if bounds["minimum"] <= value <= bounds["maximum"]:
            return value
    return _EMPTY[node.type]()


_ZERO: Final[Mapping[str, Callable[[], JsonValue]]] = {**_EMPTY, "string": str, "integer": int, "number": int}
"""What replaces a value that was cut: other than `_EMPTY`, it is plain JSON, because the schema judges it."""


@dataclass(slots=True)
class Cut:
    """Errors of values that were too long or of a wrong type, and the paths of replaced values."""

    errors: list[FieldError] = field(default_factory=list)
    replaced: set[FieldPath] = field(default_factory=set)


def cut_down(node: SchemaNode, value: JsonValue, path: FieldPath, cut: Cut) -> JsonValue:
    """Return a value truncated to its length limits; errors and replaced paths are added to `cut`."""
    if not is_typed(node, value):
        cut.errors.append(errors.wrong_type(path, value, TYPE_WORDS[node.type]))
        cut.replaced.add(path)
        return _ZERO[node.type]()
    if isinstance(value, str):
        return _bounded_text(node, value, path, cut)
    if node.type == "any" and is_deeper_than(value, FREE_LEVELS):
        cut.errors.append(errors.too_deep(path, FREE_LEVELS))
        cut.replaced.add(path)
        return None
    if isinstance(value, list) and node.items is not None:
        items = _cut_list(value, node.keywords.get("maxItems"), path, cut)
        below = node.items
        return [cut_down(below, item, path.index(place), cut) for place, item in enumerate(items)]
    if isinstance(value, dict) and node.type == "object":
        return _bounded_object(node, value, path, cut)
    return value


def _bounded_text(node: SchemaNode, value: str, path: FieldPath, cut: Cut) -> str:
    limit = node.keywords.get("maxLength")
    if limit is None or len(value) <= limit:
        return value
    cut.errors.append(errors.too_long(path, limit))
    cut.replaced.add(path)
    return ""


def _bounded_object(node: SchemaNode, value: Json, path: FieldPath, cut: Cut) -> Json:
    if node.values is not None:
        keys = _cut_list(list(value), node.keywords.get("maxProperties"), path, cut)
        below = node.values
        return {key: cut_down(below, value[key], path.key(key), cut) for key in keys}
    return {
        key: cut_down(prop.node, item, path.child(key), cut)
        for key, item in value.items()
        if (prop := node.property(key))
    }


def _cut_list(entries: list[JsonValue], limit: int | None, path: FieldPath, cut: Cut) -> list[JsonValue]:
    if limit is None or len(entries) <= limit:
        return entries
    cut.errors.append(errors.too_many(path, len(entries), limit))
    return entries[:limit]
