"""Raw JSON, untyped: the only place where `Any` is used."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

Json = dict[str, Any]
"""A JSON object as received: untyped, with unknown members preserved."""

JsonValue = Any
"""Any JSON value: object, array, string, number, boolean or null."""


def as_object(value: JsonValue) -> Json:
    """Return a value if it is an object; otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a value if it is a list; otherwise an empty list."""
    return value if isinstance(value, list) else []


def without(value: Json, names: Iterable[str]) -> Json:
    """Return an object without some of its members."""
    rest = dict(value)
    for name in names:
        rest.pop(name, None)
    return rest


def same(one: JsonValue, other: JsonValue) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1 and 1.0 is not 1."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)
