"""Fills absent fields with their defaults, as additions only.

Defaults become a list of `add` operations by construction and never by comparing two objects, so a patch
can neither remove nor replace anything. As on the server, a default inside an absent parent does nothing.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Filled, Version
from apiserver.schema.model import Node, node_of
from apiserver.schema.validation import fitting_part, is_valid

_ROOT: Final = ""


@dataclass(frozen=True, slots=True)
class Addition:
    """One absent member, by its JSON pointer (RFC 6901), and the value it gets."""

    pointer: str
    value: JsonValue

    def as_operation(self) -> Json:
        """Return the addition as an operation of a JSON patch (RFC 6902)."""
        return {"op": "add", "path": self.pointer, "value": self.value}


@dataclass(kw_only=True, slots=True)
class Completion:
    """What was filled in, in the order in which it must be applied, and the warnings that go with it.

    `fits` tells whether the schema holds for what came of it; None where nobody had to look.
    """

    additions: list[Addition] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    fits: bool | None = None


def complete(version: Version, value: Json) -> Completion:
    """Fill every default into a raw object, in place, and return what was added.

    A member that is there with another type than declared is left alone: validation will say so.
    """
    done = Completion()
    here = _defaults_of(version.declaration)
    if here is not None:
        _fill_in(here, value, _ROOT, done.additions)
    if version.fill:
        _fill_in_more(version, value, done)
    return done


def defaulted(version: Version, value: Json) -> Json:
    """Return a copy of a raw object with every default filled in."""
    result = copy.deepcopy(value)
    complete(version, result)
    return result


def additions(version: Version, value: Json) -> Completion:
    """Return what is absent from a raw object and has a default; the object is left as it is."""
    return complete(version, copy.deepcopy(value))


@dataclass(frozen=True, kw_only=True, slots=True)
class Defaulted:
    """A node cut down to what bears defaults."""

    defaults: tuple[tuple[str, JsonValue], ...]
    members: tuple[tuple[str, Defaulted], ...]
    items: Defaulted | None
    values: Defaulted | None

    def below(self, part: str | int) -> Defaulted | None:
        """Return what bears defaults of a member or an item."""
        if isinstance(part, int):
            return self.items
        return dict(self.members).get(part, self.values)


def _fill_in_more(version: Version, value: Json, done: Completion) -> None:
    fits = is_valid(version.declaration, value)
    fitting = value if fits else fitting_part(version.declaration, value)
    filled = [
        item for fill in version.fill for item in list(fill(fitting)) if _add(version, value, item, done)
    ]
    done.fits = True if fits else None if filled else False


def _fill_in(here: Defaulted, value: JsonValue, pointer: str, found: list[Addition]) -> None:
    if isinstance(value, dict):
        for name, default in here.defaults:
            if value.get(name) is None:
                value[name] = _fresh(default)
                found.append(Addition(f"{pointer}/{name}", default))
        for name, below in here.members:
            if (item := value.get(name)) is not None:
                _fill_in(below, item, f"{pointer}/{name}", found)
        if here.values is not None:
            for key, item in value.items():
                _fill_in(here.values, item, f"{pointer}/{_escaped(key)}", found)
    elif isinstance(value, list) and here.items is not None:
        for position, item in enumerate(value):
            _fill_in(here.items, item, f"{pointer}/{position}", found)


def _add(version: Version, value: Json, filled: Filled, done: Completion) -> bool:
    """Add what a function wants filled in, and the schema's defaults inside it."""
    target: JsonValue = value
    here = _defaults_of(version.declaration)
    for part in filled.path[:-1]:
        target, here = _member(target, part), here and here.below(part)
    name = filled.path[-1]
    if not isinstance(target, dict) or target.get(name) is not None:
        return False
    target[name] = filled.value
    if here is not None and (inside := here.below(name)) is not None:
        _fill_in(inside, filled.value, _ROOT, [])
    pointer = "".join(f"/{_escaped(str(part))}" for part in filled.path)
    done.additions.append(Addition(pointer, filled.value))
    if filled.warning:
        done.warnings.append(filled.warning)
    return True


def _member(value: JsonValue, part: str | int) -> JsonValue:
    if isinstance(value, dict):
        return value.get(part)
    if isinstance(value, list) and isinstance(part, int) and part < len(value):
        return value[part]
    return None


@functools.cache
def _defaults_of(declared: type) -> Defaulted | None:
    return _cut_down(node_of(declared))


def _cut_down(node: Node) -> Defaulted | None:
    defaults = tuple((prop.name, prop.default) for prop in node.properties if prop.has_default)
    members = tuple((prop.name, below) for prop in node.properties if (below := _cut_down(prop.node)))
    items = None if node.items is None else _cut_down(node.items)
    values = None if node.values is None else _cut_down(node.values)
    if not defaults and not members and items is None and values is None:
        return None
    return Defaulted(defaults=defaults, members=members, items=items, values=values)


def _fresh(default: JsonValue) -> JsonValue:
    return copy.deepcopy(default) if isinstance(default, dict | list) else default


def _escaped(part: str) -> str:
    return part.replace("~", "~0").replace("/", "~1")
