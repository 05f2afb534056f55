"""Filling in the defaults of a schema, as additions only.

The JSON patch is built from the additions, not by comparing two objects, so it can neither remove nor replace
anything. As on the API server, a default inside an absent parent has no effect.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node


class Addition(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """An absent member, given by its JSON pointer (RFC 6901), and its default value.

    It is encoded as an operation of a JSON patch (RFC 6902).
    """

    path: str
    value: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class Defaults:
    """A node reduced to what has defaults: those of its members, and the nodes below with more of them."""

    own: tuple[tuple[str, JsonValue], ...]
    members: tuple[tuple[str, Defaults], ...]
    items: Defaults | None
    values: Defaults | None


def defaults_of(node: Node) -> Defaults:
    """Return a node reduced to what has defaults."""
    members = ((prop.name, _some_defaults_of(prop.node)) for prop in node.properties)
    return Defaults(
        own=tuple((prop.name, prop.default) for prop in node.properties if prop.has_default),
        members=tuple((name, below) for name, below in members if below is not None),
        items=_some_defaults_of(node.items),
        values=_some_defaults_of(node.values),
    )


def _some_defaults_of(node: Node | None) -> Defaults | None:
    here = None if node is None else defaults_of(node)
    return here if here and (here.own or here.members or here.items or here.values) else None


def fill_in(here: Defaults, value: JsonValue, added: list[Addition], *, place: str = "") -> None:
    """Fill the defaults into a value, in place, and append what was added; `place` is its JSON pointer.

    A value of another type than the declared one is left unchanged.
    """
    if isinstance(value, list) and here.items is not None:
        for position, item in enumerate(value):
            fill_in(here.items, item, added, place=f"{place}/{position}")
    elif isinstance(value, dict) and here.values is not None:
        for key, item in value.items():
            fill_in(here.values, item, added, place=f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, dict):
        _fill_members(here, value, added, place=place)


def _fill_members(here: Defaults, value: Json, added: list[Addition], *, place: str) -> None:
    for name, default in here.own:
        if value.get(name) is None:
            value[name] = copy.deepcopy(default) if isinstance(default, dict | list) else default
            added.append(Addition(f"{place}/{name}", default))
    for name, below in here.members:
        if name in value:
            fill_in(below, value[name], added, place=f"{place}/{name}")
