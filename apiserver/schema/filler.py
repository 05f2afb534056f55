"""Filling in the defaults of a schema, as additions only.

The function is generated from the schema. The JSON patch is built from its additions, not by comparing
two objects, so it can neither remove nor replace anything. As on the API server, a default inside an absent
parent has no effect.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import msgspec

from apiserver.schema.generated import function, indent
from apiserver.schema.json import JsonValue
from apiserver.schema.model import Node


class Addition(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """An absent member, given by its JSON pointer (RFC 6901), and its default value.

    It is encoded as an operation of a JSON patch (RFC 6902).
    """

    path: str
    value: JsonValue


Fill: TypeAlias = Callable[[JsonValue, list[Addition]], None]
"""A function that fills an object, in place, and appends what it added."""


def filler(node: Node) -> Fill | None:
    """Return the function that fills in the defaults of an object and all below it; None without defaults."""
    known: dict[str, Any] = {"Addition": Addition, "deepcopy": copy.deepcopy, "escaped": _escape}
    body = _source(node, known, place="", depth=0)
    if not body:
        return None
    fill: Fill = function("v0, found", body, known, about="defaults of a declaration")
    return fill


def _escape(part: str) -> str:
    """Return the key of a map escaped for a JSON pointer; declared names have nothing to escape."""
    return part.replace("~", "~0").replace("/", "~1") if "~" in part or "/" in part else part


def _source(node: Node, known: dict[str, Any], *, place: str, depth: int) -> list[str]:
    """Return the source lines for a node; none without defaults.

    `place` is its JSON pointer, as source text of a formatted string.
    """
    value, inside, entry = f"v{depth}", f"v{depth + 1}", f"e{depth + 1}"
    if node.items is not None:
        head = [f"if isinstance({value}, list):", f" for {entry}, {inside} in enumerate({value}):"]
        below = _source(node.items, known, place=f"{place}/{{{entry}}}", depth=depth + 1)
    elif node.values is not None:
        head = [f"if isinstance({value}, dict):", f" for {entry}, {inside} in {value}.items():"]
        below = _source(node.values, known, place=f"{place}/{{escaped({entry})}}", depth=depth + 1)
    else:
        lines = list(_members_source(node, known, place=place, depth=depth))
        return [f"if isinstance({value}, dict):", *indent(lines)] if lines else []
    return [*head, *indent(indent(below))] if below else []


def _members_source(node: Node, known: dict[str, Any], *, place: str, depth: int) -> Iterator[str]:
    value, inside = f"v{depth}", f"v{depth + 1}"
    if not all(prop.name.isidentifier() for prop in node.properties):
        raise ValueError(f"members of {place} cannot be part of the source: {node.properties}")
    for prop in node.properties:
        if prop.has_default:
            default = f"default{len(known)}"
            known[default] = prop.default
            own = f"deepcopy({default})" if isinstance(prop.default, dict | list) else default
            yield f"if {value}.get({prop.name!r}) is None:"
            yield f" {value}[{prop.name!r}] = {own}"
            yield f" found.append(Addition(f{f'{place}/{prop.name}'!r}, {default}))"
    for prop in node.properties:
        if below := _source(prop.node, known, place=f"{place}/{prop.name}", depth=depth + 1):
            yield f"{inside} = {value}.get({prop.name!r})"
            yield from below
