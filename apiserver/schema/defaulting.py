"""Fills absent fields with their defaults, as additions only.

Defaults become a list of `add` operations by construction and never by comparing two objects, so a patch
can neither remove nor replace anything. As on the server, a default inside an absent parent does nothing.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Version
from apiserver.schema.model import Node, node_of


@dataclass(frozen=True, slots=True)
class Addition:
    """One absent member and the value it gets."""

    path: tuple[str | int, ...]
    value: JsonValue

    def as_operation(self) -> Json:
        """Return the addition as an RFC 6902 operation."""
        pointer = "".join(f"/{_escaped(str(part))}" for part in self.path)
        return {"op": "add", "path": pointer, "value": self.value}


def additions(version: Version, value: Json) -> tuple[list[Addition], list[str]]:
    """Return what is absent from a raw object and has a default, and the warnings that go with it.

    A member that is there with another type than declared is left alone: validation will say so.
    """
    found = list(_schema_additions(node_of(version.declaration), value, ()))
    warnings = []
    for default in version.defaults:
        if _parent_is_there(value, default.path) and default.applies(value):
            found.append(Addition(default.path, default.value))
            warnings += [default.warning] if default.warning else []
    return found, warnings


def defaulted(version: Version, value: Json) -> Json:
    """Return a copy of a raw object with every default filled in."""
    result = copy.deepcopy(value)
    for addition in additions(version, value)[0]:
        target: JsonValue = result
        for part in addition.path[:-1]:
            target = target[part]
        target[addition.path[-1]] = copy.deepcopy(addition.value)
    return result


def _schema_additions(node: Node, value: JsonValue, path: tuple[str | int, ...]) -> Iterator[Addition]:
    if isinstance(value, dict):
        for prop in node.properties:
            if value.get(prop.name) is not None:
                yield from _schema_additions(prop.node, value[prop.name], (*path, prop.name))
            elif prop.has_default:
                yield Addition((*path, prop.name), prop.default)
        if node.values is not None:
            for key, item in value.items():
                yield from _schema_additions(node.values, item, (*path, key))
    elif isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            yield from _schema_additions(node.items, item, (*path, position))


def _parent_is_there(value: Json, path: tuple[str, ...]) -> bool:
    parent: JsonValue = value
    for part in path[:-1]:
        parent = parent.get(part) if isinstance(parent, dict) else None
    return isinstance(parent, dict) and parent.get(path[-1]) is None


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
