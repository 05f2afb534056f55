"""The first judge: our validator, with its errors grouped by the judges that can find them, too."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from apiserver.schema.defaulting import with_defaults
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Version
from apiserver.schema.model import Reduced, node_of
from apiserver.schema.rules import Transition, ValidationRule
from apiserver.schema.ruling import UniqueKeys, rule_errors, rules_on
from apiserver.schema.shape import DEEPEST, is_deeper_than, well_typed, without_nulls
from apiserver.schema.validation import validate
from differential.findings import Findings, of_error


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """The findings of our judge, by layer."""

    schema: Findings
    """Errors by the schema, which every judge can find."""

    keys: Findings
    """Duplicate items of a list map, which the server finds by the list's type."""

    cel: Findings
    """Errors by rules that the server has as CEL."""

    webhook: Findings
    """Errors by rules that only our webhook has."""


def decoded(body: bytes) -> Json:
    """Return an object as the webhook decodes it."""
    value: Json = msgspec.json.decode(body)
    return value


def completed(version: Version, value: Json) -> Json:
    """Return an object with the defaults of its schema, and no other ones."""
    return value if is_deeper_than(value, DEEPEST) else with_defaults(replace(version, fill=()), value)


def judged(version: Version, value: Json) -> Layers:
    """Judge an object with defaults."""
    declared = version.declaration
    found = validate(declared, value)
    if not found:
        return Layers(schema=frozenset(), keys=frozenset(), cel=frozenset(), webhook=frozenset())
    keys, cel, webhook = (_found_by(declared, value, sort) for sort in (_is_key, _is_cel, _is_ours_alone))
    rules = keys | cel | webhook
    return Layers(
        schema=frozenset(of_error(error) for error in found if error not in rules),
        keys=frozenset(of_error(error) for error in found if error in keys),
        cel=frozenset(of_error(error) for error in found if error in cel),
        webhook=frozenset(of_error(error) for error in found if error in webhook),
    )


def _found_by(declared: type, value: Json, is_meant: Callable[[ValidationRule], bool]) -> set[FieldError]:
    rules, node = _only(declared, is_meant), node_of(declared)
    return set(rule_errors(rules, well_typed(node, without_nulls(node, value))))


@functools.cache
def _only(declared: type, is_meant: Callable[[ValidationRule], bool]) -> Reduced[ValidationRule]:
    return rules_on(node_of(declared), is_meant)


def _is_key(rule: ValidationRule) -> bool:
    return isinstance(rule, UniqueKeys)


def _is_cel(rule: ValidationRule) -> bool:
    return bool(rule.cel) and not isinstance(rule, Transition)


def _is_ours_alone(rule: ValidationRule) -> bool:
    return not rule.cel and not isinstance(rule, UniqueKeys | Transition)
