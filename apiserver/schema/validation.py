"""The one judge: the generated schema and the rules, on the raw object, every error at once.

`jsonschema-rs` decides on the schema; its error objects are read by class, never by their text. Errors are
put into the words of Kubernetes' own validation, in the order of the fields.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from typing import Final

import jsonschema_rs
import msgspec
from jsonschema_rs import ValidationError, ValidationErrorKind

from apiserver.schema import errors
from apiserver.schema.bounding import Cut, cut_down
from apiserver.schema.errors import TYPE_WORDS, FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import Ruled, breaks_rules, change_errors, rule_errors, ruled
from apiserver.schema.shape import well_typed, without_nulls
from apiserver.schema.structural import judged_schema, types_schema

_LARGE_BYTES: Final = 64 * 1024
_encode: Final = msgspec.json.Encoder().encode

MOST_ERRORS: Final = 100
"""More are not listed: a manifest of a megabyte could be wrong in a hundred thousand places."""


def validate(
    declared: type, value: Json, old: Json | None = None, *, fits: bool | None = None
) -> list[FieldError]:
    """Return everything wrong with a raw object by its declaration; empty when it is valid.

    With the stored object beside it, transition rules hold as well. A member that is null counts as absent,
    as on the server. `fits` tells what is known of the schema already.
    """
    if fits is None:
        fits = is_valid(declared, value)
    rules = ruled(declared)
    changed = [] if old is None or rules is None else _change_errors(declared, rules, old, value, fits=fits)
    if fits and not changed and (rules is None or not breaks_rules(rules, value)):
        return []
    return _listed(declared, value, changed, fits=fits)


def _listed(declared: type, value: Json, changed: list[FieldError], *, fits: bool) -> list[FieldError]:
    node = node_of(declared)
    is_typed = fits or is_well_typed(declared, value)
    pruned = value if is_typed else without_nulls(node, value)
    cut = Cut()
    try:
        if not fits and len(_encode(pruned)) > _LARGE_BYTES:
            pruned = cut_down(node, pruned, FieldPath(), cut)
        found = list(changed) if fits else [*_schema_errors(declared, node, pruned), *changed]
    except (ValueError, RecursionError):  # the judge's own limit, and the encoder's
        return [errors.invalid(FieldPath(), "...", "must not be nested as deeply as this")]
    fitting = pruned if is_typed else well_typed(node, pruned)
    found += list(islice(_rule_errors(declared, found, fitting), MOST_ERRORS + 1))
    found = [*cut.errors, *(error for error in found if error.path not in cut.replaced)]
    listed = sorted(_once(found)[:MOST_ERRORS], key=lambda error: _order(node, error.path))
    return listed + ([_and_more()] if len(found) > MOST_ERRORS else [])


def _change_errors(declared: type, rules: Ruled, old: Json, new: Json, *, fits: bool) -> list[FieldError]:
    if not rules.has_transitions:
        return []
    before, after = fitting_part(declared, old), new if fits else fitting_part(declared, new)
    return list(islice(change_errors(rules, before, after), MOST_ERRORS + 1))


def fitting_part(declared: type, value: Json) -> Json:
    """Return what of a raw object has the declared types; the object itself where all of it has."""
    if is_well_typed(declared, value):
        return value
    node = node_of(declared)
    fitting: Json = well_typed(node, without_nulls(node, value))
    return fitting


def _rule_errors(declared: type, known: Sequence[FieldError], fitting: Json) -> Iterator[FieldError]:
    """Yield breaches of rules, but for what is only due to a value of a wrong type."""
    rules = ruled(declared)
    mistyped = [error.path for error in known if error.reason == "FieldValueTypeInvalid"]
    for error in rule_errors(rules, fitting) if rules else ():
        if not any(_follows(error, path) for path in mistyped):
            yield error


def _follows(error: FieldError, mistyped: FieldPath) -> bool:
    """Tell whether a breach is only due to the empty value that stands for one of a wrong type."""
    if error.reason == "FieldValueForbidden":  # that something is set at all
        return False
    return error.path.parts[: len(mistyped.parts)] == mistyped.parts


def _and_more() -> FieldError:
    body = f"Too many: more than {MOST_ERRORS} errors; only the first {MOST_ERRORS} are listed"
    return FieldError(FieldPath().child("spec"), "FieldValueTooMany", body)


def is_valid(declared: type, value: Json) -> bool:
    """Tell whether a raw object meets the schema of its declaration; rules aside."""
    try:
        return judge(declared).is_valid(value)
    except ValueError:  # nested beyond the judge's own limit, which is far beyond ours
        return False


def is_well_typed(declared: type, value: Json) -> bool:
    """Tell whether a raw object has the JSON types of its declaration, with no null among them."""
    try:
        return _judge_of_types(declared).is_valid(value)
    except ValueError:  # as above
        return False


@functools.cache
def _judge_of_types(declared: type) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(types_schema(node_of(declared)))


@functools.cache
def judge(declared: type) -> jsonschema_rs.Draft202012Validator:
    """Return the compiled schema of a declaration, without prose and rules."""
    # The plain regex engine agrees with Go's; the default one knows look-arounds that Go does not.
    return jsonschema_rs.Draft202012Validator(
        judged_schema(node_of(declared)), validate_formats=True, pattern_options=jsonschema_rs.RegexOptions()
    )


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
            return [replace(errors.required(path.child(name)), scope=path)]
        case ValidationErrorKind.Type():
            return [errors.wrong_type(path, value, TYPE_WORDS[node.type])]
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
