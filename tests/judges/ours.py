"""The first judge: our own, with its errors told apart by who else can know of them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from apiserver.schema.defaulting import defaulted
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json
from apiserver.schema.kind import Version
from apiserver.schema.model import node_of
from apiserver.schema.rules import Rule, Transition
from apiserver.schema.ruling import Finder, UniqueKeys, finder, rule_errors, rules_on
from apiserver.schema.shape import DEEPEST, is_deeper_than, well_typed, without_nulls
from apiserver.schema.validation import validate
from judges.findings import Findings, of_error


@dataclass(frozen=True, kw_only=True, slots=True)
class Layers:
    """What our judge finds, layer by layer."""

    schema: Findings
    """What the schema says: every judge can know."""

    keys: Findings
    """Items of a list map that occur twice: the server knows from the list's type."""

    cel: Findings
    """Rules that the server knows as CEL."""

    webhook: Findings
    """Rules that only we know."""


def decoded(body: bytes) -> Json:
    """Return an object as a webhook reads it."""
    value: Json = msgspec.json.decode(body)
    return value


def completed(version: Version, value: Json) -> Json:
    """Return an object with the defaults that its schema has, and no others."""
    return value if is_deeper_than(value, DEEPEST) else defaulted(replace(version, fill=()), value)


def judged(version: Version, value: Json) -> Layers:
    """Judge an object whose defaults are filled in."""
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


def _found_by(declared: type, value: Json, is_meant: Callable[[Rule], bool]) -> set[FieldError]:
    find, node = _only(declared, is_meant), node_of(declared)
    return set(rule_errors(find(well_typed(node, without_nulls(node, value))))) if find else set()


@functools.cache
def _only(declared: type, is_meant: Callable[[Rule], bool]) -> Finder | None:
    here = rules_on(node_of(declared), is_meant)
    return finder(here) if here else None


def _is_key(rule: Rule) -> bool:
    return isinstance(rule, UniqueKeys)


def _is_cel(rule: Rule) -> bool:
    return bool(rule.cel()) and not isinstance(rule, Transition)


def _is_ours_alone(rule: Rule) -> bool:
    return not rule.cel() and not isinstance(rule, UniqueKeys | Transition)
