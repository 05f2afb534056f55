"""Validation of raw objects: a declaration is compiled once, and finds all errors at once.

The errors of an object are listed in the order of the fields. Errors by the schema are recognized by
the keyword that fails, never by their text, and translated into the wording of Kubernetes: `jsonschema-rs`
validates objects, and `jsonschema` documents of settings.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

import jsonschema_rs
import msgspec

from apiserver.schema import errors
from apiserver.schema.errors import FORBIDDEN, INVALID, TYPE_WORDS, WRONG_TYPE, FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.metadata import with_metadata
from apiserver.schema.model import SchemaNode, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import change_errors, is_check, is_transition, rule_errors, rules_on
from apiserver.schema.shape import Cut, cut_down, well_typed, without_nulls
from apiserver.schema.structural import judged_schema

_LARGE_BYTES: Final = 64 * 1024
_encode: Final = msgspec.json.Encoder().encode

MOST_ERRORS: Final = 100
"""The maximum number of errors that are listed: a manifest of a megabyte could have a hundred thousand."""


class Judge:
    """The compiled validation and defaults of a kind of object. For that of a declaration, see `judge`."""

    def __init__(self, node: SchemaNode) -> None:
        self.node: Final = with_metadata(node)
        # This regex engine behaves like Go's; the default one supports look-arounds, which Go's does not.
        self._schema = jsonschema_rs.Draft202012Validator(
            judged_schema(self.node), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
        )
        self._checks = rules_on(self.node, is_check)
        self._changes = rules_on(self.node, is_transition)

    def is_valid(self, value: Json) -> bool:
        """Tell whether a raw object is valid by the schema, without regard to rules."""
        try:
            return self._schema.is_valid(value)
        except ValueError:  # nested beyond the library's own limit, which is far beyond ours
            return False

    def typed_part(self, value: Json) -> Json:
        """Return a raw object with only values of the declared types; itself if the schema allows it."""
        if self.is_valid(value):
            return value
        part: Json = well_typed(self.node, without_nulls(self.node, value))
        return part

    def validate(self, value: Json, old: Json | None = None, *, fits: bool | None = None) -> list[FieldError]:
        """Return everything wrong with a raw object; empty if it is valid.

        If the stored object `old` is given, transition rules apply as well. A null member counts as absent,
        as on the API server. `fits` is the result of `is_valid`, if known.
        """
        if fits is None:
            fits = self.is_valid(value)
        changed = [] if old is None else self._change_errors(old, value, fits=fits)
        if fits:
            return self._list([*changed, *islice(rule_errors(self._checks, value), MOST_ERRORS + 1)], Cut())
        cut = Cut()
        problems, ruled = self._of_misfit(value, cut)
        known = [*problems, *changed]
        return self._list([*known, *islice(_unless_mistyped(ruled, known), MOST_ERRORS + 1)], cut)

    def _change_errors(self, old: Json, new: Json, *, fits: bool) -> list[FieldError]:
        before, after = self.typed_part(old), new if fits else self.typed_part(new)
        return list(islice(change_errors(self._changes, before, after), MOST_ERRORS + 1))

    def _list(self, problems: list[FieldError], cut: Cut) -> list[FieldError]:
        problems = [*cut.errors, *(error for error in problems if error.path not in cut.replaced)]
        once = [*dict.fromkeys(problems)][:MOST_ERRORS]
        listed = sorted(once, key=lambda error: field_order(self.node, error.path))
        return listed + ([_and_more()] if len(problems) > MOST_ERRORS else [])

    def _of_misfit(self, value: Json, cut: Cut) -> tuple[list[FieldError], Iterator[FieldError]]:
        """Return the schema errors of a value, and the rule errors of its well-typed part."""
        pruned = without_nulls(self.node, value)
        if _is_large(pruned):
            pruned = cut_down(self.node, pruned, FieldPath(), cut)
        try:
            problems = self._schema_errors(pruned)
        except ValueError:  # nested beyond the library's own limit
            pruned = cut_down(self.node, pruned, FieldPath(), cut)
            problems = self._schema_errors(pruned)
        return problems, rule_errors(self._checks, well_typed(self.node, pruned))

    def _schema_errors(self, value: Json) -> list[FieldError]:
        failures = islice(self._schema.iter_errors(value), MOST_ERRORS + 1)
        problems = [
            error_for(self.node, each.instance_path, each.kind.name, each.kind.value, each.instance)
            for each in failures
        ]
        mistyped = {error.path for error in problems if error.reason == WRONG_TYPE}
        # A bound does not apply to a value of another type; an enum does, as on the API server.
        return [error for error in problems if error.reason != INVALID or error.path not in mistyped]


@functools.cache
def judge(declared: type) -> Judge:
    """Return the compiled judge of a declaration."""
    return Judge(node_of(declared))


def validate(declared: type, value: Json, old: Json | None = None) -> list[FieldError]:
    """Return everything wrong with a raw object by its declaration; see `Judge.validate`."""
    return judge(declared).validate(value, old)


def _unless_mistyped(problems: Iterator[FieldError], known: Sequence[FieldError]) -> Iterator[FieldError]:
    """Yield errors of rules, except those caused by values of a wrong type."""
    mistyped = [error.path for error in known if error.reason == WRONG_TYPE]
    for error in problems:
        if not any(_follows(error, path) for path in mistyped):
            yield error


def _is_large(value: Json) -> bool:
    try:
        return len(_encode(value)) > _LARGE_BYTES
    except RecursionError:
        return True


def _follows(error: FieldError, mistyped: FieldPath) -> bool:
    """Tell whether an error is caused only by the empty value that replaces one of a wrong type."""
    if error.reason == FORBIDDEN:  # the field is set, whatever its value
        return False
    return error.path.parts[: len(mistyped.parts)] == mistyped.parts


def _and_more() -> FieldError:
    body = f"Too many: more than {MOST_ERRORS} errors; only the first {MOST_ERRORS} are listed"
    return FieldError(FieldPath().child("spec"), "FieldValueTooMany", body)


def field_order(node: SchemaNode, path: FieldPath) -> list[tuple[int, str]]:
    """Return the sort key of a path by which fields are in the order of their declarations."""
    order: list[tuple[int, str]] = []
    for part in path.parts:
        names: list[str | int] = list(node.by_name)
        rank = names.index(part) if part in node.by_name else part if isinstance(part, int) else len(names)
        order.append((rank, str(part)))
        node, _ = descend(node, part)
    return order


def error_for(
    root: SchemaNode, parts: Sequence[str | int], keyword: str, limit: JsonValue, value: JsonValue
) -> FieldError:
    """Return the field error for a value at some path that a keyword of the schema does not allow.

    `limit` is the value of the keyword in the schema; for `required`, the name of the absent member. Raises
    TypeError for a keyword that no declaration can contain.
    """
    node, path = locate(root, parts)
    match keyword:
        case "required":
            return replace(errors.required(path.child(limit)), scope=path)
        case "type":
            return errors.wrong_type(path, value, TYPE_WORDS[node.type])
        case "enum":
            return errors.unsupported(path, value, limit)
        case "maxLength":
            return errors.too_long(path, limit)
        case "maxItems" | "maxProperties":
            return errors.too_many(path, len(value), limit)
        case _:
            return errors.invalid(path, value, _demand(node, keyword, limit))


def _demand(node: SchemaNode, keyword: str, limit: JsonValue) -> str:
    match keyword:
        case "pattern":
            if "pattern" not in node.keywords and node.values is not None:
                node = node.values  # for an entry with an empty key, the library reports the path of the map
            return (
                f"must be {node.says}" if node.says else f"must match the pattern {node.keywords['pattern']}"
            )
        case "format":
            return f"must be a valid {limit}"
        case _:
            return _bound_message(keyword, limit)


def _bound_message(keyword: str, limit: JsonValue) -> str:
    match keyword:
        case "minimum":
            return f"must be greater than or equal to {limit}"
        case "maximum":
            return f"must be less than or equal to {limit}"
        case "minLength":
            return f"must be at least {_count_text(limit, 'character')} long"
        case "minItems":
            return f"must have at least {_count_text(limit, 'item')}"
        case "minProperties":
            return f"must have at least {_count_text(limit, 'entry', 'entries')}"
        case _:
            raise TypeError(f"the schema failed by {keyword!r}, which no declaration can demand")


def _count_text(limit: int, one: str, many: str = "") -> str:
    return f"{limit} {one if limit == 1 else many or one + 's'}"


def locate(root: SchemaNode, parts: Sequence[str | int]) -> tuple[SchemaNode, FieldPath]:
    """Return the node at a path, given by JSON names and positions, and the field path.

    The validator reports a name of digits, such as the label `0`, as a number.
    """
    node, path = root, list[str | int]()
    for part in parts:
        node, written = descend(node, part)
        path.append(written)
    return node, FieldPath(tuple(path))


def descend(node: SchemaNode, part: str | int) -> tuple[SchemaNode, str | int]:
    """Return the node of a member or item of a node, and the part of a field path for it."""
    if isinstance(part, int) and node.items is not None:
        return node.items, part
    name = str(part)
    prop = node.by_name.get(name)
    return (prop.node, name) if prop is not None else (node.values or node, f"[{name}]")
