"""Defaulting of an object, by additions only: the schema defaults, then those that depend on other fields.

The JSON patch is built from the additions, not by comparing two objects, so it can neither remove nor replace
anything. As on the API server, a default inside an absent parent has no effect.
"""

from __future__ import annotations

import copy

import msgspec

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import ComputedDefault, Version
from apiserver.schema.model import SchemaNode, node_of
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
    _fill_in(node_of(declared), value, added, place="")
    return added


def _fill_in(node: SchemaNode, value: JsonValue, added: list[Addition], *, place: str) -> None:
    """Fill the defaults into a value, in place, and append what was added; `place` is its JSON pointer."""
    if isinstance(value, list) and node.items is not None:
        for position, item in enumerate(value):
            _fill_in(node.items, item, added, place=f"{place}/{position}")
    elif isinstance(value, dict) and node.values is not None:
        for key, item in value.items():
            _fill_in(node.values, item, added, place=f"{place}/{key.replace('~', '~0').replace('/', '~1')}")
    elif isinstance(value, dict):
        for prop in node.properties:
            if prop.has_default and value.get(prop.name) is None:
                value[prop.name] = copy.deepcopy(prop.default)
                added.append(Addition(f"{place}/{prop.name}", prop.default))
        for prop in node.properties:
            if isinstance(item := value.get(prop.name), dict | list):
                _fill_in(prop.node, item, added, place=f"{place}/{prop.name}")


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
