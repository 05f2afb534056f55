"""The one judge: the generated schema and the rules, on the raw object, every error at once.

`jsonschema-rs` decides on the schema; its error objects are read by class, never by their text. Errors are
put into the words of Kubernetes' own validation, in the order of the fields.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.structural import judged_schema

MOST_ERRORS: Final = 100
"""More are not listed: a manifest of a megabyte could be wrong in a hundred thousand places."""

DEEPEST: Final = 64
"""No declaration nests nearly as deep; what is deeper would exhaust the stack of whoever walks it."""

_TYPE_WORDS: Final = {
    "string": "must be a string",
    "integer": "must be an integer",
    "number": "must be a number",
    "boolean": "must be true or false",
    "object": "must be an object",
    "array": "must be a list",
}


def validate(declared: type, value: Json) -> list[FieldError]:
    """Return everything wrong with a raw object by its declaration; empty when it is valid.

    A member that is null counts as absent, as on the server.
    """
    if is_deeper_than(value, DEEPEST):
        return [errors.invalid(FieldPath(), "...", f"must not be nested deeper than {DEEPEST} levels")]
    node = node_of(declared)
    pruned = without_nulls(value)
    found = [] if judge(declared).is_valid(pruned) else _schema_errors(declared, node, pruned)
    found += islice(_rule_errors(node, pruned, FieldPath()), MOST_ERRORS + 1)
    listed = sorted(_once(found)[:MOST_ERRORS], key=lambda error: _order(node, error.path))
    return listed + ([_and_more()] if len(found) > MOST_ERRORS else [])


def is_deeper_than(value: JsonValue, levels: int) -> bool:
    """Tell whether a value is nested deeper than some number of levels, without recursion."""
    waiting = [(value, 0)]
    while waiting:
        item, level = waiting.pop()
        if level > levels:
            return True
        if isinstance(item, dict):
            waiting += [(inner, level + 1) for inner in item.values()]
        elif isinstance(item, list):
            waiting += [(inner, level + 1) for inner in item]
    return False


def _and_more() -> FieldError:
    body = f"Too many: more than {MOST_ERRORS} errors; only the first {MOST_ERRORS} are listed"
    return FieldError(FieldPath().child("spec"), "FieldValueTooMany", body)


@functools.cache
def judge(declared: type) -> jsonschema_rs.Draft202012Validator:
    """Return the compiled schema of a declaration, without prose and rules."""
    # The plain regex engine agrees with Go's; the default one knows look-arounds that Go does not.
    return jsonschema_rs.Draft202012Validator(
        judged_schema(node_of(declared)), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
    )


def without_nulls(value: JsonValue) -> JsonValue:
    """Return a value without members that are null: the server drops them before anyone looks."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value]
    return value


def _schema_errors(declared: type, node: Node, value: Json) -> list[FieldError]:
    found: list[FieldError] = []
    for failure in islice(judge(declared).iter_errors(value), MOST_ERRORS + 1):
        found += _translated(node, failure)
    return found


def _translated(root: Node, failure: ValidationError) -> list[FieldError]:
    node, path = _located(root, failure.instance_path)
    value: JsonValue = failure.instance
    kind = failure.kind
    match kind:
        case ValidationErrorKind.Required(property=name):
            return [errors.required(path.child(name))]
        case ValidationErrorKind.Type():
            return [errors.wrong_type(path, value, _TYPE_WORDS[node.type])]
        case ValidationErrorKind.Enum(options=options):
            return [errors.unsupported(path, value, options)]
        case ValidationErrorKind.MaxLength(limit=limit):
            return [errors.too_long(path, limit)]
        case ValidationErrorKind.MaxItems(limit=limit) | ValidationErrorKind.MaxProperties(limit=limit):
            return [errors.too_many(path, len(value), limit)]
        case _:
            return [errors.invalid(path, value, _demand(node, kind))]


def _demand(node: Node, kind: ValidationErrorKind) -> str:
    match kind:
        case ValidationErrorKind.Pattern():
            return (
                f"must be {node.says}" if node.says else f"must match the pattern {node.keywords['pattern']}"
            )
        case ValidationErrorKind.Format(format=name):
            return f"must be a valid {name}"
        case _:
            return _bound(kind)


def _bound(kind: ValidationErrorKind) -> str:
    match kind:
        case ValidationErrorKind.Minimum(limit=limit):
            return f"must be greater than or equal to {limit}"
        case ValidationErrorKind.Maximum(limit=limit):
            return f"must be less than or equal to {limit}"
        case ValidationErrorKind.MinLength(limit=limit):
            return f"must be at least {_counted(limit, 'character')} long"
        case ValidationErrorKind.MinItems(limit=limit):
            return f"must have at least {_counted(limit, 'item')}"
        case ValidationErrorKind.MinProperties(limit=limit):
            return f"must have at least {_counted(limit, 'entry', 'entries')}"
        case _:
            raise TypeError(f"the schema failed by {kind!r}, which no declaration can demand")


def _counted(limit: int, one: str, many: str = "") -> str:
    return f"{limit} {one if limit == 1 else many or one + 's'}"


def _located(root: Node, parts: Sequence[str | int]) -> tuple[Node, FieldPath]:
    node, path = root, FieldPath()
    for part in parts:
        if isinstance(part, int):
            node, path = node.items or node, path.index(part)
        elif (prop := node.property(part)) is not None:
            node, path = prop.node, path.child(part)
        else:
            node, path = node.values or node, path.key(part)
    return node, path


def _rule_errors(node: Node, value: JsonValue, path: FieldPath) -> Iterator[FieldError]:
    if isinstance(value, dict):
        for rule in node.rules:
            yield from rule.check(value, path)
        for prop in node.properties:
            if prop.name in value:
                yield from _rule_errors(prop.node, value[prop.name], path.child(prop.name))
        if node.values is not None:
            for key, item in value.items():
                yield from _rule_errors(node.values, item, path.key(key))
    elif isinstance(value, list) and node.items is not None:
        yield from _duplicates(node, value, path)
        most = node.keywords.get("maxItems", len(value))
        for position, item in enumerate(value[:most]):
            yield from _rule_errors(node.items, item, path.index(position))


def _duplicates(node: Node, items: list[JsonValue], path: FieldPath) -> Iterator[FieldError]:
    names: list[str] = node.keywords.get("x-kubernetes-list-map-keys", [])
    seen: list[JsonValue] = []
    most = node.keywords.get("maxItems", len(items))
    for position, item in enumerate(items[:most] if names else []):
        key = {name: item[name] for name in names if name in item} if isinstance(item, dict) else None
        if key and key in seen:
            yield errors.duplicate(path.index(position), key)
        seen.append(key)


def _once(found: list[FieldError]) -> list[FieldError]:
    return list(dict.fromkeys(found))


def _order(node: Node, path: FieldPath) -> list[tuple[int, str]]:
    order: list[tuple[int, str]] = []
    here: Node | None = node
    for part in path.parts:
        names = [prop.name for prop in here.properties] if here else []
        rank = names.index(part) if part in names else part if isinstance(part, int) else len(names)
        order.append((rank, str(part)))
        here, _ = _located(here, [part]) if here else (None, None)
    return order
