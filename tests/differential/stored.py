"""The object as a server stores it: without undeclared members and nulls, whole floats as integers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from apiserver.schema.json import JsonValue
from apiserver.schema.model import SchemaNode

_ABSENT: Final = "nothing"


def as_stored(node: SchemaNode, value: JsonValue) -> JsonValue:
    """Return a valid value with defaults as a server returns it."""
    return _whole(node, pruned(node, value))


def pruned(node: SchemaNode, value: JsonValue) -> JsonValue:
    """Return a value without undeclared members and nulls, as a server stores it and webhooks receive it."""
    if isinstance(value, dict) and node.type == "object" and node.values is None:
        members = {prop.name: prop.node for prop in node.properties}
        return {
            key: pruned(members[key], item)
            for key, item in value.items()
            if key in members and item is not None
        }
    if isinstance(value, dict) and node.values is not None:
        return {key: pruned(node.values, item) for key, item in value.items() if item is not None}
    if isinstance(value, list) and node.items is not None:
        return [pruned(node.items, item) for item in value]
    if isinstance(value, dict) and node.type not in {"object", "any"}:
        return {}  # a value that should be a text has no declared member
    return value


def _whole(node: SchemaNode, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        return {key: _whole(_below(node, key), item) for key, item in value.items()}
    if isinstance(value, list) and node.items is not None:
        return [_whole(node.items, item) for item in value]
    return int(value) if isinstance(value, float) and node.type == "integer" else value


def _below(node: SchemaNode, name: str) -> SchemaNode:
    prop = node.property(name)
    return prop.node if prop else node.values or SchemaNode(type="any")


def differences(wanted: JsonValue, stored: JsonValue, path: str) -> Iterator[str]:
    """Yield each difference between the expected and the stored value."""
    if isinstance(wanted, dict) and isinstance(stored, dict):
        for name in sorted(wanted.keys() | stored.keys()):
            yield from differences(wanted.get(name, _ABSENT), stored.get(name, _ABSENT), f"{path}.{name}")
    elif isinstance(wanted, list) and isinstance(stored, list) and len(wanted) == len(stored):
        for position, item in enumerate(wanted):
            yield from differences(item, stored[position], f"{path}[{position}]")
    elif not _is_same(wanted, stored):
        yield f"{path}: {stored!r} is stored, not {wanted!r}"


def _is_same(wanted: JsonValue, stored: JsonValue) -> bool:
    if isinstance(wanted, bool) or isinstance(stored, bool):
        return wanted is stored
    if isinstance(wanted, int | float) and isinstance(stored, int | float):
        return wanted == stored or float(wanted) == float(
            stored
        )  # beyond 64 bits, the server computes with floats
    return bool(wanted == stored)
