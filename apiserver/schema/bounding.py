"""Truncation of an invalid value to its bounds, before its errors are listed.

A manifest may hold megabytes where a declaration allows a name. A text that is too long or of another type
gets only that error; of a list or map that is too long, only the entries within its limit are validated.
Undeclared members are dropped.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import TYPE_WORDS, FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import FREE_LEVELS, is_deeper_than, is_typed

_BLANK: Final[Mapping[str, Callable[[], JsonValue]]] = {
    "object": dict,
    "array": list,
    "string": str,
    "integer": int,
    "number": int,
    "boolean": bool,
    "int-or-string": str,
}


@dataclass(slots=True)
class Cut:
    """Errors of values that were too long or of a wrong type, and the paths of replaced values."""

    errors: list[FieldError] = field(default_factory=list)
    replaced: set[FieldPath] = field(default_factory=set)


def cut_down(node: Node, value: JsonValue, path: FieldPath, cut: Cut) -> JsonValue:
    """Return a value truncated to its length limits; errors and replaced paths are added to `cut`."""
    if not is_typed(node, value):
        cut.errors.append(errors.wrong_type(path, value, TYPE_WORDS[node.type]))
        cut.replaced.add(path)
        return _BLANK[node.type]()
    if isinstance(value, str):
        return _text(node, value, path, cut)
    if node.type == "any" and is_deeper_than(value, FREE_LEVELS):
        cut.errors.append(errors.too_deep(path, FREE_LEVELS))
        cut.replaced.add(path)
        return None
    if isinstance(value, list) and node.items is not None:
        items = _within(value, node.keywords.get("maxItems"), path, cut)
        below = node.items
        return [cut_down(below, item, path.index(place), cut) for place, item in enumerate(items)]
    if isinstance(value, dict) and node.type == "object":
        return _object(node, value, path, cut)
    return value


def _text(node: Node, value: str, path: FieldPath, cut: Cut) -> str:
    limit = node.keywords.get("maxLength")
    if limit is None or len(value) <= limit:
        return value
    cut.errors.append(errors.too_long(path, limit))
    cut.replaced.add(path)
    return ""


def _object(node: Node, value: Json, path: FieldPath, cut: Cut) -> Json:
    if node.values is not None:
        keys = _within(list(value), node.keywords.get("maxProperties"), path, cut)
        below = node.values
        return {key: cut_down(below, value[key], path.key(key), cut) for key in keys}
    return {
        key: cut_down(prop.node, item, path.child(key), cut)
        for key, item in value.items()
        if (prop := node.property(key))
    }


def _within(entries: list[JsonValue], limit: int | None, path: FieldPath, cut: Cut) -> list[JsonValue]:
    if limit is None or len(entries) <= limit:
        return entries
    cut.errors.append(errors.too_many(path, len(entries), limit))
    return entries[:limit]
