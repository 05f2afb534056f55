"""Rules of the schema vocabulary: their errors, CEL expressions and descriptions."""

from __future__ import annotations

import math

import pytest

from apiserver.schema.errors import REQUIRED
from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import (
    AtMostOneOf,
    Cel,
    EachItem,
    ExactlyOneOf,
    Immutable,
    LessOrEqual,
    Transition,
    ValidationRule,
    When,
    Within,
)

IMMUTABLE = "field is immutable: to change it, delete the object and create it anew"

ORDERED = LessOrEqual("least", "most")
SHORT = Within("1s", "1m")
SOME = AtMostOneOf(("a", "b", "c"))
ONE = ExactlyOneOf(("a", "b", "c"))
NAMED = Cel(
    "has(self.name) && size(self.name) > 0",
    lambda value: bool(value.get("name")),
    "must be set and not empty",
    sentence="`name` is set and not empty.",
    field="name",
    reason=REQUIRED,
)
FEW = Cel(
    "size(self) <= 2",
    lambda items: len(items) <= 2,
    "must have at most 2 items",
    sentence="At most 2 items.",
    shown=len,
)
HEADED = EachItem(
    "workers",
    "role",
    When(
        unless="!has(self.isSplit)", applies=lambda value: "isSplit" in value, words="when `isSplit` is set"
    ),
    expression="(has(item.role) ? item.role : 'all') != 'all'",
    holds=lambda item: item.get("role", "all") != "all",
    message="must not be 'all' when `isSplit` is set",
    sentence="`role` of `workers` is not 'all' when `isSplit` is set.",
    default="all",
)

HOLDS: dict[str, tuple[ValidationRule, JsonValue]] = {
    "equal numbers": (ORDERED, {"least": 1, "most": 1}),
    "one of the two numbers": (ORDERED, {"least": 1}),
    "a number of a wrong type, left to the schema": (ORDERED, {"least": math.nan, "most": 1}),
    "a duration at a bound": (SHORT, "60s"),
    "a text that is no duration, left to the schema": (SHORT, "long"),
    "none of the fields": (SOME, {}),
    "one of the fields": (SOME, {"c": 1}),
    "exactly one field": (ONE, {"b": 1}),
    "a member that is set": (NAMED, {"name": "a"}),
    "a short list": (FEW, ["a", "b"]),
    "items that keep the rule": (HEADED, {"isSplit": True, "workers": [{"role": "head"}]}),
    "items without the condition": (HEADED, {"workers": [{}]}),
    "no list, left to the schema": (HEADED, {"isSplit": True}),
}

BROKEN: dict[str, tuple[ValidationRule, JsonValue, list[str]]] = {
    "a lower bound above the upper one": (
        ORDERED,
        {"least": 2, "most": 1},
        ["least: Invalid value: 2: must be less than or equal to `most`"],
    ),
    "a duration below its bounds": (
        SHORT,
        "999ms",
        ['<nil>: Invalid value: "999ms": must be between 1s and 1m'],
    ),
    "a duration above its bounds": (
        SHORT,
        "1m1s",
        ['<nil>: Invalid value: "1m1s": must be between 1s and 1m'],
    ),
    "three of the fields": (
        SOME,
        {"a": 1, "b": 2, "c": 3},
        [
            "b: Forbidden: may not be set together with `a`",
            "c: Forbidden: may not be set together with `a` or `b`",
        ],
    ),
    "none of the fields": (ONE, {}, ["a: Required value: exactly one of `a`, `b` and `c` must be set"]),
    "two of the fields": (ONE, {"b": 1, "c": 2}, ["c: Forbidden: may not be set together with `a` or `b`"]),
    "a member that is absent": (NAMED, {}, ["name: Required value: must be set and not empty"]),
    "a long list": (FEW, ["a", "b", "c"], ["<nil>: Invalid value: 3: must have at most 2 items"]),
    "two of three items": (
        HEADED,
        {"isSplit": True, "workers": [{}, {"role": "head"}, {"role": "all"}]},
        [
            "workers[0].role: Invalid value: \"all\": must not be 'all' when `isSplit` is set",
            "workers[2].role: Invalid value: \"all\": must not be 'all' when `isSplit` is set",
        ],
    ),
}

CEL: dict[str, tuple[ValidationRule, list[str]]] = {
    "LessOrEqual": (ORDERED, ["!has(self.least) || !has(self.most) || self.least <= self.most"]),
    "Within": (SHORT, ["duration(self) >= duration('1s') && duration(self) <= duration('1m')"]),
    "AtMostOneOf": (SOME, ["!has(self.b) || !has(self.a)", "!has(self.c) || (!has(self.a) && !has(self.b))"]),
    "ExactlyOneOf": (
        ONE,
        [
            "has(self.a) || has(self.b) || has(self.c)",
            "!has(self.b) || !has(self.a)",
            "!has(self.c) || (!has(self.a) && !has(self.b))",
        ],
    ),
    "EachItem": (
        HEADED,
        [
            "!has(self.isSplit) || !has(self.workers)"
            " || self.workers.all(item, (has(item.role) ? item.role : 'all') != 'all')"
        ],
    ),
    "Immutable": (
        Immutable("parts"),
        ["(has(self.parts) ? self.parts : []) == (has(oldSelf.parts) ? oldSelf.parts : [])"],
    ),
}

CHANGES: dict[str, tuple[Transition, JsonValue, JsonValue, list[str]]] = {
    "a value that remains": (Transition("", str.__eq__, ""), "a", "a", []),
    "a value that changes": (
        Transition("", str.__eq__, ""),
        "a",
        "b",
        [f'<nil>: Invalid value: "b": {IMMUTABLE}'],
    ),
    "an empty list instead of none": (Immutable("parts"), {}, {"parts": []}, []),
    "another order of a list map": (
        Immutable("parts", is_map=True),
        {"parts": [1, 2]},
        {"parts": [2, 1]},
        [],
    ),
    "another order of a list": (
        Immutable("parts"),
        {"parts": [1, 2]},
        {"parts": [2, 1]},
        [f"parts: Invalid value: [2,1]: {IMMUTABLE}"],
    ),
    "a list that is removed": (
        Immutable("parts", is_map=True),
        {"parts": [1]},
        {},
        [f"parts: Invalid value: null: {IMMUTABLE}"],
    ),
}


@pytest.mark.parametrize(("rule", "value"), HOLDS.values(), ids=HOLDS.keys())
def test_a_rule_that_holds_returns_no_error(rule: ValidationRule, value: JsonValue) -> None:
    """Values that the rule does not apply to are no error either."""
    assert list(rule.check(value, FieldPath())) == []


@pytest.mark.parametrize(("rule", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_violated_rule_returns_an_error(rule: ValidationRule, value: JsonValue, want: list[str]) -> None:
    """The error is at the field that has to change, and shows its value."""
    assert [str(error) for error in rule.check(value, FieldPath())] == want


@pytest.mark.parametrize(("rule", "want"), CEL.values(), ids=CEL.keys())
def test_a_rule_is_expressed_in_cel(rule: ValidationRule, want: list[str]) -> None:
    """The API server checks the same."""
    assert [entry.rule for entry in rule.cel] == want


@pytest.mark.parametrize(("rule", "old", "new", "want"), CHANGES.values(), ids=CHANGES.keys())
def test_a_change_of_an_immutable_value_returns_an_error(
    rule: Transition, old: JsonValue, new: JsonValue, want: list[str]
) -> None:
    """The rule has no error for the new value alone."""
    assert [str(error) for error in rule.compare(old, new, FieldPath())] == want
    assert list(rule.check(new, FieldPath())) == []


def test_the_error_of_cel_is_that_of_the_webhook() -> None:
    """The API server reports it with the same reason, at the same field or at the value itself."""
    (at_member,), (at_itself,) = NAMED.cel, FEW.cel
    (member,) = NAMED.check({"name": ""}, FieldPath())
    (itself,) = FEW.check(["a", "b", "c"], FieldPath())

    assert (f".{member.path}", member.reason) == (at_member.as_json()["fieldPath"], at_member.reason)
    assert ("fieldPath" in at_itself.as_json(), itself.reason) == (False, at_itself.reason)


def test_the_cel_message_names_the_member_if_the_path_is_that_of_the_list() -> None:
    """The path cannot point at a member of the items."""
    (entry,) = HEADED.cel

    assert entry.as_json()["fieldPath"] == ".workers"
    assert entry.message == "`role` must not be 'all' when `isSplit` is set"
