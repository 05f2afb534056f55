"""Errors of a configuration, worded as those of objects."""

from __future__ import annotations

import difflib
import math
from collections.abc import Sequence
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.validation import judge

_MOST_NAMED: Final = 12


def as_json(value: JsonValue) -> JsonValue:
    """Return a value of YAML with everything that JSON lacks, such as dates and NaN, as text."""
    match value:
        case dict():
            return {str(name): as_json(item) for name, item in value.items()}
        case list():
            return [as_json(item) for item in value]
        case None | str() | bool() | int():
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            return str(value)


def document_errors(declared: type, document: Json) -> list[FieldError]:
    """Return everything wrong with a document of JSON values: fields in their order, then unknown ones."""
    unknown: list[FieldError] = []
    known = _known(document, node_of(declared), FieldPath(), unknown)
    return [*judge(declared).validate(known), *unknown]


def _known(value: JsonValue, node: Node, path: FieldPath, unknown: list[FieldError]) -> JsonValue:
    """Return a value without the fields that are not declared, which are added to `unknown`."""
    if isinstance(value, list) and node.items is not None:
        return [_known(item, node.items, path.index(n), unknown) for n, item in enumerate(value)]
    if not isinstance(value, dict) or node.values is not None or not node.properties:
        return value
    kept: Json = {}
    for name, item in value.items():
        prop = node.property(name)
        if prop is not None:
            kept[name] = _known(item, prop.node, path.child(name), unknown)
        else:
            allowed = [prop.name for prop in node.properties]
            unknown.append(errors.forbidden(path.child(name), f"unknown field; {_instead(name, allowed)}"))
    return kept


def _instead(name: str, allowed: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, allowed, n=1)
    if close:
        return f"is {close[0]} meant?"
    more = ", ..." if len(allowed) > _MOST_NAMED else ""
    return f"allowed are {', '.join(sorted(allowed)[:_MOST_NAMED])}{more}"
