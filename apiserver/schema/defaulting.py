"""Defaulting of an object, by additions only: the schema defaults, then those that depend on other fields.

The JSON patch is built from the additions, not by comparing two objects, so it can neither remove nor replace
anything. As on the API server, a default inside an absent parent has no effect.
"""

from __future__ import annotations

import copy
import functools

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import ComputedDefault, Version
from apiserver.schema.model import Property, Reduced, node_of, reduce_node
from apiserver.schema.shape import NESTING
from apiserver.schema.validation import judge


class Addition(msgspec.Struct, frozen=True, gc=False, tag_field="op", tag="add"):
    """An absent member, given by its JSON pointer (RFC 6901), and its default value.

    It is encoded as an operation of a JSON patch (RFC 6902).
    """

    path: str
    value: JsonValue


def schema_defaults(declared: type, value: Json) -> list[Addition]:
    """Fill every schema default into a raw object, in place, and return what was added.

    A member of a wrong type is left unchanged; validation reports it.
    """
    added: list[Addition] = []
    _fill_in(_tree_of_defaults(declared), value, added, place="")
    return added


@functools.cache
def _tree_of_defaults(declared: type) -> Reduced[Property]:
    return reduce_node(node_of(declared), lambda node: tuple(it for it in node.properties if it.has_default))


def _fill_in(here: Reduced[Property], value: JsonValue, added: list[Addition], *, place: str) -> None:
    """Fill the defaults into a value, in place, and append what was added; `place` is its JSON pointer."""
    if isinstance(value, list) and here.items is not None:
        for position, item in enumerate(value):
            _fill_in(here.items, item, added, place=f"{place}/{position}")
    elif isinstance(value, dict) and here.values is not None:
        for key, item in value.items():
            _fill_in(here.values, item, added, place=f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, dict):
        for prop in here.own:
            if value.get(prop.name) is None:
                default = prop.default
                value[prop.name] = copy.deepcopy(default) if type(default) in NESTING else default
                added.append(Addition(f"{place}/{prop.name}", default))
        for name, below in here.members:
            if name in value:
                _fill_in(below, value[name], added, place=f"{place}/{name}")


class Completion(msgspec.Struct, kw_only=True):
    """The defaults that were filled in, in order of application, with their warnings.

    `fits` tells whether the resulting object is valid by the schema.
    """

    additions: list[Addition] = []
    warnings: list[str] = []
    fits: bool


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
    fitting = value if done.fits else compiled.typed_part(value)
    filled = [item for fill in version.fill for item in list(fill(fitting)) if _add(value, item, done)]
    if [item for item in filled if isinstance(item.value, dict)]:
        schema_defaults(version.declaration, value)  # adds only the defaults inside the new values
    if filled and not done.fits:
        done.fits = compiled.is_valid(value)


def _add(value: Json, filled: ComputedDefault, done: Completion) -> bool:
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
