"""The errors of rules: on a value itself, and on and below its members, items and entries."""

from __future__ import annotations

from typing import Annotated

import pytest

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.markers import Items, MapKeys
from apiserver.schema.model import node_of
from apiserver.schema.rules import AtMostOneOf, Cel, ExactlyOneOf, LessOrEqual
from apiserver.schema.ruling import is_check, rule_errors, rules_on


@declaration(ExactlyOneOf(("file", "text")))
class Source:
    """A choice."""

    file: Maybe[str] = UNSET
    """Where it is."""

    text: Maybe[str] = UNSET
    """What it is."""


@declaration(LessOrEqual("least", "most"))
class Part:
    """An item of a list map."""

    name: str
    """Key."""

    least: Maybe[int] = UNSET
    """Lower bound."""

    most: Maybe[int] = UNSET
    """Upper bound."""

    sources: Maybe[dict[str, Source]] = UNSET
    """Choices by name."""


BOUNDED = Cel(
    "",
    lambda parts: sum(part.get("most", 0) for part in parts) <= 9,
    "must not be more than 9 in sum",
    sentence="",
)


@declaration(AtMostOneOf(("parts", "source")))
class Whole:
    """Rules on itself, on a member, on items and on entries."""

    parts: Maybe[Annotated[tuple[Part, ...], Items(maximum=3), MapKeys("name"), BOUNDED]] = UNSET
    """Items."""

    source: Maybe[Source] = UNSET
    """One choice."""

    free: Maybe[JsonValue] = UNSET
    """Free JSON."""


def nested(levels: int) -> JsonValue:
    """Return a text in lists and objects, nested this many levels deep; a list is the outermost."""
    value: JsonValue = "x"
    for level in reversed(range(levels)):
        value = {"a": value} if level % 2 else [value]
    return value


RULES = rules_on(node_of(Whole), is_check)

SOUND: dict[str, Json] = {
    "nothing is set": {},
    "a valid member": {"source": {"file": "a"}},
    "valid items and entries": {
        "parts": [
            {"name": "a", "least": 1, "most": 4, "sources": {"one": {"text": "x"}}},
            {"name": "b", "most": 5},
        ]
    },
    "free JSON nested a hundred levels deep": {"free": nested(100)},
    "an item beyond the maximum, which is an error by the schema": {
        "parts": [{"name": "a"}, {"name": "b"}, {"name": "c"}, {"name": "c", "most": 10, "least": 11}]
    },
}

BROKEN: dict[str, tuple[Json, list[str]]] = {
    "a rule on the whole": ({"parts": [], "source": {"file": "a"}}, ["source"]),
    "a rule on a member": ({"source": {}}, ["source.file"]),
    "a rule on a list": ({"parts": [{"name": "a", "most": 10}]}, ["parts"]),
    "the keys of a list map": ({"parts": [{"name": "a"}, {"name": "a"}]}, ["parts[1]"]),
    "a rule on the last item": (
        {"parts": [{"name": "a"}, {"name": "b", "least": 2, "most": 1}]},
        ["parts[1].least"],
    ),
    "a rule on the last item within the maximum": (
        {"parts": [{"name": "a"}, {"name": "b"}, {"name": "c", "least": 2, "most": 1}, {"name": "d"}]},
        ["parts[2].least"],
    ),
    "a rule on an entry of an item": (
        {"parts": [{"name": "a", "sources": {"one": {"file": "a"}, "two": {}}}]},
        ["parts[0].sources[two].file"],
    ),
    "a list in free JSON is nested too deeply": ({"free": nested(101)}, ["free"]),
    "an object in free JSON is nested too deeply": ({"free": {"a": nested(100)}}, ["free"]),
    "several rules": (
        {"parts": [{"name": "a", "least": 2, "most": 1}], "source": {}},
        ["source", "parts[0].least", "source.file"],
    ),
}


@pytest.mark.parametrize("value", SOUND.values(), ids=SOUND.keys())
def test_a_valid_value_breaks_no_rule(value: Json) -> None:
    """A value without any members is valid, too."""
    assert list(rule_errors(RULES, value)) == []


@pytest.mark.parametrize(("value", "places"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_rule_has_an_error(value: Json, places: list[str]) -> None:
    """The errors are in the order of the tree."""
    assert [str(error.path) for error in rule_errors(RULES, value)] == places
