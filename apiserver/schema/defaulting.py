"""Defaulting of an object: the schema defaults, then the defaults that depend on other fields."""

from __future__ import annotations

import copy

import msgspec

from apiserver.schema.filler import Addition
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Filled, Version
from apiserver.schema.validation import judge


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
    compiled = judge(version.declaration)
    additions = compiled.default(value)
    done = Completion(additions=additions, fits=compiled.is_valid(value))
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
        compiled.default(value)  # adds only the defaults inside the new values
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
