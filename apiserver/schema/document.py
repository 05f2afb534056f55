"""Validation of documents of settings: configuration files, service classes and prices.

They are written by hand and read by us alone. So, unlike in objects, an unknown field is an error: it is a
typing error that would otherwise have no effect. The same holds for a duplicate field: parsers of YAML accept
it, and the last one silently wins. `jsonschema` validates; it is imported when the first document is
validated, because that takes a quarter of a second.
"""

from __future__ import annotations

import difflib
import functools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import yaml

from apiserver.schema import errors
from apiserver.schema.editor import settings_schema
from apiserver.schema.errors import FieldError
from apiserver.schema.json import JsonValue
from apiserver.schema.model import SchemaNode, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.shape import DEEPEST, is_deeper_than, without_nulls
from apiserver.schema.validation import error_for, field_order, locate

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator, TypeChecker
    from jsonschema.exceptions import ValidationError


_MOST_NAMED: Final = 12
_LEAST_LIKENESS: Final = 0.75
_TEXTS: Final = frozenset({"string", "int-or-string"})


def document_errors(declared: type, document: JsonValue) -> list[FieldError]:
    """Return everything wrong with a document of YAML: fields in their order, then unknown ones.

    A null member counts as absent. A value that JSON lacks, such as a date, is of a wrong type, also where
    text is allowed.
    """
    node = node_of(declared)
    if is_deeper_than(document, DEEPEST):
        return [errors.invalid(locate(node, ())[1], "...", "must not be nested as deeply as this")]
    value = without_nulls(node, document) if isinstance(document, dict) else document
    failures = list(_validator(declared).iter_errors(value))
    known = dict.fromkeys(error for failure in failures for error in _errors(node, failure))
    mistyped = {error.path for error in known if error.reason == "FieldValueTypeInvalid"}
    # A bound does not apply to a value of another type.
    known = {
        error: None for error in known if error.reason != "FieldValueInvalid" or error.path not in mistyped
    }
    unknown = [error for failure in failures for error in _unknown(node, failure)]
    return [*sorted(known, key=lambda error: field_order(node, error.path)), *unknown]


def as_json(value: JsonValue) -> JsonValue:
    """Return a value of YAML with everything that JSON lacks, such as dates and NaN, as text."""
    match value:
        case dict():
            return {str(name): as_json(item) for name, item in value.items()}
        case list():
            return [as_json(item) for item in value]
        case _:
            return value if _is_scalar(value) else str(value)


def nearest(name: str, allowed: Sequence[str], *, likeness: float = _LEAST_LIKENESS) -> str:
    """Return the allowed name that a misspelt one most resembles; empty if none is similar."""
    return next(iter(difflib.get_close_matches(name, allowed, n=1, cutoff=likeness)), "")


def _is_scalar(value: JsonValue) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return value is None or isinstance(value, str | bool | int)


@functools.cache
def _validator(declared: type) -> Draft202012Validator:
    from jsonschema import Draft202012Validator, validators  # noqa: PLC0415 (see above)

    types = Draft202012Validator.TYPE_CHECKER.redefine_many({"number": _is_number, "integer": _is_integer})
    cls: type[Draft202012Validator] = validators.extend(  # type: ignore[no-untyped-call] # without annotations
        Draft202012Validator, {"pattern": _pattern}, type_checker=types
    )
    return cls(settings_schema(declared))


def _is_number(_: TypeChecker, value: object) -> bool:
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, int) and not isinstance(value, bool)


def _is_integer(_: TypeChecker, value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()  # as JSON Schema defines it
    return isinstance(value, int) and not isinstance(value, bool)


def _pattern(_: object, pattern: str, value: object, __: object) -> Iterator[ValidationError]:
    """Match as RE2 does, the dialect of all declarations: Python's `$` also matches before a line break."""
    import re2  # noqa: PLC0415 (as above)
    from jsonschema.exceptions import ValidationError  # noqa: PLC0415 (as above)

    if isinstance(value, str) and not re2.search(pattern, value):
        yield ValidationError(f"{value!r} does not match {pattern!r}")


def _errors(root: SchemaNode, failure: ValidationError) -> Iterator[FieldError]:
    """Yield the errors of a failed keyword; none for unknown fields."""
    parts, keyword, value = [*failure.absolute_path], str(failure.validator), failure.instance
    limit: JsonValue = failure.validator_value
    if keyword == "additionalProperties":
        return
    if keyword == "required":
        assert isinstance(value, dict)
        for name in limit:  # all names, of which the failure is about one
            if name not in value:
                yield error_for(root, parts, keyword, name, value)
        return
    node, path = locate(root, parts)
    keyword = "type" if keyword == "anyOf" else keyword  # the type of an integer or string
    if (
        keyword == "type"
        and node.type in _TEXTS
        and not isinstance(value, dict | list)
        and not _is_scalar(value)
    ):
        yield errors.wrong_type(path, str(value), f"{errors.TYPE_WORDS[node.type]}: write it in quotes")
    else:
        yield error_for(root, parts, keyword, limit, as_json(value))


def _unknown(root: SchemaNode, failure: ValidationError) -> Iterator[FieldError]:
    node, path = locate(root, [*failure.absolute_path])
    if failure.validator != "additionalProperties" or not isinstance(failure.instance, dict):
        return
    allowed = [prop.name for prop in node.properties]
    for name in failure.instance:
        if name not in allowed:
            yield errors.forbidden(path.child(str(name)), f"unknown field{_instead(str(name), allowed)}")


def _instead(name: str, allowed: Sequence[str]) -> str:
    close = nearest(name, allowed)
    guess = f" (is {close} meant?)" if close else ""
    more = ", ..." if len(allowed) > _MOST_NAMED else ""
    return f"{guess}; allowed are {', '.join(sorted(allowed)[:_MOST_NAMED])}{more}"


_MERGE: Final = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateField:
    """A field that its mapping already has, and the line on which it occurs again."""

    path: FieldPath
    line: int

    def __str__(self) -> str:
        return f'duplicate field "{self.path}": keep one of them'


def duplicate_fields(text: str) -> list[DuplicateField]:
    """Return the duplicate fields of YAML text by line. It can be loaded, so that keys are scalars.

    The loader is that of `safe_load`: another one does not accept exactly the same texts.
    """
    roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    return sorted(_duplicates(roots), key=lambda duplicate: duplicate.line)


def _duplicates(roots: list[yaml.Node]) -> Iterator[DuplicateField]:
    waiting = [(root, FieldPath()) for root in roots]
    seen: set[int] = set()
    while waiting:
        node, path = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(item, path.index(position)) for position, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            yield from _repetitions(node, path)
            waiting += [(value, path.child(str(key.value))) for key, value in node.value]


def _repetitions(node: yaml.MappingNode, path: FieldPath) -> Iterator[DuplicateField]:
    known: set[tuple[str, str]] = set()
    for key, _ in node.value:
        name = (key.tag, str(key.value))
        if name in known and key.tag != _MERGE:
            yield DuplicateField(path=path.child(name[1]), line=key.start_mark.line + 1)
        known.add(name)
