"""Errors of a configuration, worded as those of objects."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge

_MOST_NAMED: Final = 12
_LEAST_LIKENESS: Final = 0.75
_TEXTS: Final = frozenset({"string", "int-or-string"})


def as_json(value: JsonValue) -> JsonValue:
    """Return a value of YAML with everything that JSON lacks, such as dates and NaN, as text."""
    match value:
        case dict():
            return {str(name): as_json(item) for name, item in value.items()}
        case list():
            return [as_json(item) for item in value]
        case _:
            return value if _is_scalar(value) else str(value)


def _is_scalar(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | bool | int)


def document_errors(declared: type, document: Json) -> list[FieldError]:
    """Return everything wrong with a document of YAML: fields in their order, then unknown ones.

    A value that JSON lacks, such as a date, is a wrong type, also where text is allowed.
    """
    found = _Found()
    known = as_json(_known(document, node_of(declared), FieldPath(), found))
    judged = [error for error in judge(declared).validate(known) if error.path not in found.no_text]
    return [*found.no_text.values(), *judged, *found.unknown]


@dataclass(slots=True)
class _Found:
    """The errors that validation of JSON values cannot find."""

    no_text: dict[FieldPath, FieldError] = field(default_factory=dict)
    unknown: list[FieldError] = field(default_factory=list)


def _known(value: JsonValue, node: Node, path: FieldPath, found: _Found) -> JsonValue:
    """Return a value without the fields that are not declared; add errors to `found`."""
    if isinstance(value, list) and node.items is not None:
        return [_known(item, node.items, path.index(n), found) for n, item in enumerate(value)]
    if isinstance(value, dict) and node.values is not None:
        return {name: _known(item, node.values, path.key(str(name)), found) for name, item in value.items()}
    if not isinstance(value, dict) or not node.properties:
        if node.type in _TEXTS and not isinstance(value, dict | list) and not _is_scalar(value):
            detail = f"{errors.TYPE_WORDS[node.type]}: write it in quotes"
            found.no_text[path] = errors.wrong_type(path, str(value), detail)
        return value
    kept: Json = {}
    for name, item in value.items():
        prop = node.property(name)
        if prop is not None:
            kept[name] = _known(item, prop.node, path.child(name), found)
        else:
            allowed = [prop.name for prop in node.properties]
            text = f"unknown field{_instead(str(name), allowed)}"
            found.unknown.append(errors.forbidden(path.child(str(name)), text))
    return kept


def _instead(name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1, cutoff=_LEAST_LIKENESS)
    guess = f" (is {close[0]} meant?)" if close else ""
    more = ", ..." if len(allowed) > _MOST_NAMED else ""
    return f"{guess}; allowed are {', '.join(sorted(allowed)[:_MOST_NAMED])}{more}"
