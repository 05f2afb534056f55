"""Rules about one member: what each refuses, and how it says so to the server and in the reference page."""

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
def test_a_word_that_holds_says_nothing(word: Rule, value: Json) -> None:
    """What the word does not speak of is no error."""
    assert list(word.check(value, HERE)) == []


@pytest.mark.parametrize(("word", "value", "want"), BROKEN.values(), ids=BROKEN.keys())
def test_a_word_that_is_broken_says_so_once(word: Rule, value: Json, want: str) -> None:
    """One error where the change has to be made."""
    assert [str(error) for error in word.check(value, HERE)] == [want]


@pytest.mark.parametrize(("word", "rule", "where", "english"), SAYS.values(), ids=SAYS.keys())
def test_a_word_says_itself(word: Rule, rule: str, where: str | None, english: str) -> None:
    """The server gets the same demand at the same place, and the reference page a sentence."""
    (entry,) = (cel.as_json() for cel in word.cel())

    assert (entry["rule"], entry.get("fieldPath")) == (rule, where)
    assert word.english() == english
