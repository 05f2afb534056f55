"""Filling in the defaults of a schema, as additions only.

One function is built per node that has defaults. The JSON patch is built from its additions, not by comparing
two objects, so it can neither remove nor replace anything. As on the API server, a default inside an absent
parent has no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TypeAlias

import msgspec

from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node


class Addition(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """An absent member, given by its JSON pointer (RFC 6901), and its default value.

    It is encoded as an operation of a JSON patch (RFC 6902).
    """

    path: str
    value: JsonValue


Fill: TypeAlias = Callable[[JsonValue, str, list[Addition]], None]
"""A function that fills a value located at a JSON pointer, in place, and appends what it added."""


def filler(node: Node) -> Fill | None:
    """Return the function that fills in the defaults of a node and all below it; None without defaults."""
    if node.items is not None:
        return _items_filler(filler(node.items))
    if node.values is not None:
        return _values_filler(filler(node.values))
    return _members_filler(node)


def escaped(part: str) -> str:
    """Return a name escaped for a JSON pointer."""
    return part.replace("~", "~0").replace("/", "~1") if "~" in part or "/" in part else part


def _members_filler(node: Node) -> Fill | None:
    defaults = [
        (prop.name, f"/{prop.name}", prop.default, isinstance(prop.default, dict | list))
        for prop in node.properties
        if prop.has_default
    ]
    below = [(prop.name, f"/{prop.name}", filler(prop.node)) for prop in node.properties]
    inner = [(name, step, inside) for name, step, inside in below if inside is not None]
    if not defaults and not inner:
        return None

    def fill(value: JsonValue, pointer: str, found: list[Addition]) -> None:
        if not isinstance(value, dict):
            return
        for name, step, default, is_nested in defaults:
            if value.get(name) is None:
                value[name] = copy.deepcopy(default) if is_nested else default
                found.append(Addition(pointer + step, default))
        for name, step, inside in inner:
            if (item := value.get(name)) is not None:
                inside(item, pointer + step, found)

    return fill


def _items_filler(inside: Fill | None) -> Fill | None:
    if inside is None:
        return None

    def fill(value: JsonValue, pointer: str, found: list[Addition]) -> None:
        if isinstance(value, list):
            for position, item in enumerate(value):
                inside(item, f"{pointer}/{position}", found)

    return fill


def _values_filler(inside: Fill | None) -> Fill | None:
    if inside is None:
        return None

    def fill(value: JsonValue, pointer: str, found: list[Addition]) -> None:
        if isinstance(value, dict):
            for key, item in value.items():
                inside(item, f"{pointer}/{escaped(key)}", found)

    return fill
