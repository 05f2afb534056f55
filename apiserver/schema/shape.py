"""A raw value held against the shape that a declaration gives it: nulls, wrong types, widths, depth."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import UnionType
from typing import Final

from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node


class Blank(str):
    """The text that stands for a value of a wrong type: empty, and the same as no other."""

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

_NESTING: Final = (dict, list)

DEEPEST: Final = 64
"""No declaration nests nearly as deep; what is deeper could exhaust the stack of whoever walks it."""

FREE_LEVELS: Final = 100
"""How deep free JSON may be nested. Decoders of JSON stop somewhere below a thousand levels."""


def is_deeper_than(value: JsonValue, levels: int) -> bool:
    """Tell whether a value is nested deeper than some number of levels, without recursion."""
    nested = [value] if isinstance(value, _NESTING) else []
    for _ in range(levels):
        inner = [each for item in nested for each in (item.values() if isinstance(item, dict) else item)]
        nested = [item for item in inner if isinstance(item, _NESTING)]
        if not nested:
            return False
    return any(nested)


def without_nulls(node: Node, value: JsonValue) -> JsonValue:
    """Return a value without declared members that are null: the server drops them before anyone looks.

    A null inside a list stays, and so does whatever free JSON holds.
    """
    if isinstance(value, dict) and (node.properties or node.values is not None):
        return {
            key: without_nulls(_below(node, key), item) for key, item in value.items() if item is not None
        }
    if isinstance(value, list) and node.items is not None:
        return [without_nulls(node.items, item) for item in value]
    return value


def well_typed(node: Node, value: JsonValue) -> JsonValue:
    """Return what of a value has the declared JSON types, so that rules need not ask.

    What is of another type, or a number beyond the width of its type, leaves an empty value of the right one,
    so that it still counts as set. The empty number is not-a-number: no comparison with it holds.
    """
    if isinstance(value, dict) and (node.properties or node.values is not None):
        return {key: _fitted(_below(node, key), item) for key, item in value.items()}
    if isinstance(value, list) and node.items is not None:
        return [_fitted(node.items, item) for item in value]
    return value


def is_typed(node: Node, value: JsonValue) -> bool:
    """Tell whether a value has the JSON type that a node declares; a whole float is an integer."""
    if isinstance(value, bool):
        return node.type in {"boolean", "any"}
    if isinstance(value, float) and value.is_integer():
        return node.type in {"integer", "int-or-string", "number", "any"}
    return isinstance(value, _TYPES[node.type])


def _fitted(node: Node, value: JsonValue) -> JsonValue:
    fits = is_typed(node, value) and (isinstance(value, str) or _is_within_width(node, value))
    return well_typed(node, value) if fits else _EMPTY[node.type]()


def _is_within_width(node: Node, value: JsonValue) -> bool:
    bounds = node.bounds
    return not bounds or bounds["minimum"] <= value <= bounds["maximum"]


def _below(node: Node, key: str) -> Node:
    if node.values is not None:
        return node.values
    prop = node.property(key)
    return _UNDECLARED if prop is None else prop.node


_UNDECLARED: Final = Node(type="any")
