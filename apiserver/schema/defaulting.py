"""Defaulting of an object, by additions only: the schema defaults, then those that depend on other fields.

The JSON patch is built from the additions, not by comparing two objects, so it can neither remove nor replace
anything. As on the API server, a default inside an absent parent has no effect.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import dataclass

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Filled, Version
from apiserver.schema.model import Node, node_of
from apiserver.schema.validation import judge


class Addition(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """An absent member, given by its JSON pointer (RFC 6901), and its default value.

    It is encoded as an operation of a JSON patch (RFC 6902).
    """

    path: str
    value: JsonValue


@dataclass(frozen=True, kw_only=True, slots=True)
class _Defaults:
    """A node reduced to what has defaults: those of its members, and the nodes below with more of them."""

    own: tuple[tuple[str, JsonValue], ...]
    members: tuple[tuple[str, _Defaults], ...]
    items: _Defaults | None
    values: _Defaults | None


@functools.cache
def _declared_defaults(declared: type) -> _Defaults:
    return _defaults_of(node_of(declared))


def _defaults_of(node: Node) -> _Defaults:
    members = ((prop.name, _some_defaults_of(prop.node)) for prop in node.properties)
    return _Defaults(
        own=tuple((prop.name, prop.default) for prop in node.properties if prop.has_default),
        members=tuple((name, below) for name, below in members if below is not None),
        items=_some_defaults_of(node.items),
        values=_some_defaults_of(node.values),
    )


def _some_defaults_of(node: Node | None) -> _Defaults | None:
    here = None if node is None else _defaults_of(node)
    return here if here and (here.own or here.members or here.items or here.values) else None


def schema_defaults(declared: type, value: Json) -> list[Addition]:
    """Fill every schema default into a raw object, in place, and return what was added.

    A member of a wrong type is left unchanged; validation reports it.
    """
    added: list[Addition] = []
    _fill_in(_declared_defaults(declared), value, added, place="")
    return added


def _fill_in(here: _Defaults, value: JsonValue, added: list[Addition], *, place: str) -> None:
    """Fill the defaults into a value, in place, and append what was added; `place` is its JSON pointer."""
    if isinstance(value, list) and here.items is not None:
        for position, item in enumerate(value):
            _fill_in(here.items, item, added, place=f"{place}/{position}")
    elif isinstance(value, dict) and here.values is not None:
        for key, item in value.items():
            _fill_in(here.values, item, added, place=f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, dict):
        _fill_members(here, value, added, place=place)


def _fill_members(here: _Defaults, value: Json, added: list[Addition], *, place: str) -> None:
    for name, default in here.own:
        if value.get(name) is None:
            value[name] = copy.deepcopy(default) if isinstance(default, dict | list) else default
            added.append(Addition(f"{place}/{name}", default))
    for name, below in here.members:
        if name in value:
            _fill_in(below, value[name], added, place=f"{place}/{name}")


class Completion(msgspec.Struct, kw_only=True):
    """The defaults that were filled in, in order of application, with their warnings.

    `fits` tells whether the resulting object is valid by the schema, and `is_typed` whether it is well-typed
    (None if that is not known).
    """

    additions: list[Addition] = []
    warnings: list[str] = []
    fits: bool
    is_typed: bool | None = None


def complete(version: Version, value: Json) -> Completion:
    """Fill every default into a raw object, in place, and return what was added."""
    additions = schema_defaults(version.declaration, value)
    done = Completion(additions=additions, fits=judge(version.declaration).is_valid(value))
    if version.fill:
        _fill_in_more(version, value, done)
    return done


def with_defaults(version: Version, value: Json) -> Json:
    """Return a copy of a raw object with every default filled in."""
    result = copy.deepcopy(value)
    complete(version, result)
    return result


def _fill_in_more(version: Version, value: Json, done: Completion) -> None:
    compiled = judge(version.declaration)
    fitting = value if done.fits else compiled.fitting(value)
    done.is_typed = fitting is value
    filled = [item for fill in version.fill for item in list(fill(fitting)) if _add(value, item, done)]
    if [item for item in filled if isinstance(item.value, dict)]:
        schema_defaults(version.declaration, value)  # adds only the defaults inside the new values
    if filled and not done.fits:
        done.fits = compiled.is_valid(value)


def _add(value: Json, filled: Filled, done: Completion) -> bool:
    """Set a computed default if its parent exists and it is unset."""
    path, name = filled.path, filled.path[-1]
    target: JsonValue = value
    try:
        for part in path[:-1]:
            target = target[part]
    except (KeyError, IndexError, TypeError):
        return False
    if not isinstance(target, dict) or target.get(name) is not None:
        return False
    target[name] = filled.value
    done.additions.append(Addition("/%s" * len(path) % path, filled.value))
    if filled.warning:
        done.warnings.append(filled.warning)
    return True
