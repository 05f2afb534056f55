"""Rules of the schema vocabulary: their errors, CEL expressions and descriptions."""

from __future__ import annotations

import math

import pytest

from apiserver.schema.comparison import Different, SomePositive
from apiserver.schema.errors import FieldError, invalid
from apiserver.schema.filling import NotEmpty, NotEmptyUnless
from apiserver.schema.json import JsonValue
from apiserver.schema.paths import FieldPath
from apiserver.schema.presence import WithoutKey
from apiserver.schema.rules import Rule, WebhookOnly
from apiserver.schema.transitions import Unchanged

DIFFERENT = Different("left", "right")
POSITIVE = SomePositive("weight", default=100)
NOT_EMPTY = NotEmptyUnless("labels", "group")
NAMED = NotEmpty("name")
KEYLESS = WithoutKey("example.com/name", because="which is taken")

HOLDS: dict[str, tuple[Rule, JsonValue]] = {
    "two maps differ": (DIFFERENT, {"left": {"a": "1"}, "right": {"a": "2"}}),
    "one map is absent": (DIFFERENT, {"left": {"a": "1"}}),
    "two empty maps, left to the schema": (DIFFERENT, {"left": {}, "right": {}}),
    "one weight is above zero": (POSITIVE, [{"weight": 0}, {"weight": 1}]),
    "an absent weight counts as the default": (POSITIVE, [{"weight": 0}, {}]),
    "no items, left to the schema": (POSITIVE, []),
    "a weight of a wrong type, left to the schema": (POSITIVE, [{"weight": math.nan}]),
    "labels are set": (NOT_EMPTY, {"labels": {"a": "1"}}),
    "the other field is set": (NOT_EMPTY, {"group": {}}),
    "the other field is set beside empty labels": (NOT_EMPTY, {"labels": {}, "group": {}}),
    "the member is there": (NAMED, {"name": "a"}),
    "other keys may be there": (KEYLESS, {"example.com/other": "a"}),
    "no keys at all": (KEYLESS, {}),
}

BROKEN: dict[str, tuple[Rule, JsonValue, str]] = {
    "two maps are the same": (
        DIFFERENT,
        {"left": {"a": "1"}, "right": {"a": "1"}},
        'left: Invalid value: {"a":"1"}: must differ from `right`',
    ),
    "all weights are zero": (
        POSITIVE,
        [{"weight": 0}, {"weight": 0}],
        "<nil>: Invalid value: 0: the sum of `weight` must be greater than 0",
    ),
    "neither labels nor the other field": (
        NOT_EMPTY,
        {},
        "labels: Required value: must be set and not empty unless `group` is set",
    ),
    "empty labels alone": (
        NOT_EMPTY,
        {"labels": {}},
        "labels: Required value: must be set and not empty unless `group` is set",
    ),
    "the member is absent": (NAMED, {}, "name: Required value: must be set and not empty"),
    "the member is empty": (NAMED, {"name": ""}, "name: Required value: must be set and not empty"),
    "the key is there": (
        KEYLESS,
        {"example.com/name": "a"},
        "<nil>: Forbidden: may not have the key `example.com/name`, which is taken",
    ),
}

CEL: dict[str, tuple[Rule, str]] = {
    "Different": (
        DIFFERENT,
        "!has(self.left) || !has(self.right) || size(self.left) == 0 || self.left != self.right",
    ),
    "SomePositive": (
        POSITIVE,
        "size(self) == 0 || self.exists(item, (has(item.weight) ? item.weight : 100) > 0)",
    ),
    "NotEmptyUnless": (NOT_EMPTY, "has(self.group) || (has(self.labels) && size(self.labels) > 0)"),
    "NotEmpty": (NAMED, "has(self.name) && size(self.name) > 0"),
    "WithoutKey": (KEYLESS, "!('example.com/name' in self)"),
    "Unchanged": (Unchanged(), "self == oldSelf"),
}

ENGLISH: dict[str, tuple[Rule, str]] = {
    "Different": (DIFFERENT, "`left` differs from `right`."),
    "SomePositive": (POSITIVE, "`weight` of at least one item is greater than 0."),
    "NotEmptyUnless": (NOT_EMPTY, "`labels` is set and not empty unless `group` is set."),
    "NotEmpty": (NAMED, "`name` is set and not empty."),
    "WithoutKey": (KEYLESS, "May not have the key `example.com/name`, which is taken."),
    "Unchanged": (Unchanged(), "Cannot be changed to another value once it is stored."),
}


@pytest.mark.parametrize(("word", "value"), HOLDS.values(), ids=HOLDS.keys())
def test_a_rule_that_holds_returns_no_error(word: Rule, value: JsonValue) -> None:
    """Values that the rule does not apply to are no error either."""
    assert list(word.check(value, FieldPath())) == []


@pytest.mark.parametrize(("word", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_violated_rule_returns_one_error(word: Rule, value: JsonValue, want: str) -> None:
    """The error is at the field that has to change."""
    assert [str(error) for error in word.check(value, FieldPath())] == [want]


@pytest.mark.parametrize(("word", "want"), CEL.values(), ids=CEL.keys())
def test_a_rule_is_expressed_in_cel(word: Rule, want: str) -> None:
    """The API server checks the same."""
    assert [rule.rule for rule in word.cel()] == [want]


@pytest.mark.parametrize(("word", "want"), ENGLISH.values(), ids=ENGLISH.keys())
def test_a_rule_is_described_in_english(word: Rule, want: str) -> None:
    """The sentence is printed on the reference page."""
    assert word.english() == want


def test_the_error_of_cel_is_that_of_the_webhook() -> None:
    """The API server reports it at the same field, or at the value itself."""
    (at_member,), (at_itself,) = NAMED.cel(), KEYLESS.cel()
    (member,) = NAMED.check({"name": ""}, FieldPath())
    (itself,) = KEYLESS.check({"example.com/name": "a"}, FieldPath())

    assert (str(member.path), member.reason) == ("name", at_member.reason)
    assert itself.reason == at_itself.reason
    assert (at_member.as_json()["fieldPath"], at_member.reason) == (".name", "FieldValueRequired")
    assert (at_itself.field_name, at_itself.reason) == ("", "FieldValueForbidden")


def test_an_immutable_value_cannot_be_changed() -> None:
    """The error is at the path of the value itself."""
    errors = Unchanged().compare("a", "b", FieldPath().child("name"))

    assert [str(error) for error in errors] == [
        'name: Invalid value: "b": field is immutable: to change it, delete the object and create it anew'
    ]


def test_an_immutable_value_may_remain() -> None:
    """An update that does not change it gets no error."""
    assert list(Unchanged().compare("a", "a", FieldPath())) == []


def _refusing(value: JsonValue, path: FieldPath) -> list[FieldError]:
    return [invalid(path, value, "is refused")]


def test_a_functional_rule_applies_only_under_its_condition() -> None:
    """Without the condition no value has an error, whatever the function returns."""
    rule = WebhookOnly(_refusing, "Shorter than three characters.", only_if="len({0}) > 2")

    assert [(rule.is_broken(text), len(rule.check(text, FieldPath()))) for text in ("ab", "abc")] == [
        (False, 0),
        (True, 1),
    ]
