"""Rules about one member: their errors, CEL expressions and descriptions."""

from __future__ import annotations

import pytest

from apiserver.schema.json import Json
from apiserver.schema.members import NotEmpty, WithoutKey
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Rule

NAMED = NotEmpty("name")
KEYLESS = WithoutKey("example.com/name", because="which is taken")
HERE = FieldPath().child("ref")

HOLDS: dict[str, tuple[Rule, Json]] = {
    "the member is there": (NAMED, {"name": "a"}),
    "other keys may be there": (KEYLESS, {"example.com/other": "a"}),
    "no keys at all": (KEYLESS, {}),
}

BROKEN: dict[str, tuple[Rule, Json, str]] = {
    "the member is absent": (NAMED, {}, "ref.name: Required value: must be set and not empty"),
    "the member is empty": (NAMED, {"name": ""}, "ref.name: Required value: must be set and not empty"),
    "the key is there": (
        KEYLESS,
        {"example.com/name": "a"},
        "ref: Forbidden: may not have the key `example.com/name`, which is taken",
    ),
}

SAYS = {
    "NotEmpty": (NAMED, "has(self.name) && size(self.name) > 0", ".name", "`name` is set and not empty."),
    "WithoutKey": (
        KEYLESS,
        "!('example.com/name' in self)",
        None,
        "May not have the key `example.com/name`, which is taken.",
    ),
}


@pytest.mark.parametrize(("word", "value"), HOLDS.values(), ids=HOLDS.keys())
def test_a_rule_that_holds_returns_no_error(word: Rule, value: Json) -> None:
    """Values that the rule does not apply to are no error either."""
    assert list(word.check(value, HERE)) == []


@pytest.mark.parametrize(("word", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_violated_rule_returns_one_error(word: Rule, value: Json, want: str) -> None:
    """The error is at the field that has to change."""
    assert [str(error) for error in word.check(value, HERE)] == [want]


@pytest.mark.parametrize(("word", "rule", "where", "english"), SAYS.values(), ids=SAYS.keys())
def test_a_rule_is_expressed_in_cel_and_described_in_english(
    word: Rule, rule: str, where: str | None, english: str
) -> None:
    """The API server checks the same at the same field, and the reference page has a sentence."""
    (entry,) = (cel.as_json() for cel in word.cel())

    assert (entry["rule"], entry.get("fieldPath")) == (rule, where)
    assert word.english() == english
