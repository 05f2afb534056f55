"""Validation against declarations: all errors at once, in Kubernetes' words."""

from __future__ import annotations

from typing import Annotated, Literal

import pytest

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED
from apiserver.schema.json import Json
from apiserver.schema.markers import Format, Items, Length, MapKeys, Pattern, Properties, Range
from apiserver.schema.rules import AtMostOneOf, Cel
from apiserver.schema.validation import validate


@declaration()
class Part:
    """An item of a list map."""

    name: Annotated[str, Length(1, 8)]
    """Key."""

    weight: Maybe[Annotated[int, Range(0, 100)]] = UNSET
    """Share."""


@declaration(AtMostOneOf(("alone", "left")), AtMostOneOf(("alone", "right")))
class Thing:
    """Something with one field of each sort."""

    name: Maybe[Annotated[str, Pattern(r"^[a-z]+$", says="lower-case letters")]] = UNSET
    """Name."""

    role: Literal["Serve", "Prefill"] = "Serve"
    """What it does."""

    alone: Maybe[bool] = UNSET
    """Excludes the others."""

    left: Maybe[int] = UNSET
    """One half."""

    right: Maybe[int] = UNSET
    """The other half."""

    ratio: Maybe[float] = UNSET
    """Any number."""

    since: Maybe[Annotated[str, Format("date-time")]] = UNSET
    """When."""

    labels: Maybe[Annotated[dict[str, Annotated[str, Length(maximum=3)]], Properties(1, 2)]] = UNSET
    """Texts."""

    parts: Maybe[Annotated[tuple[Part, ...], Items(1, 2), MapKeys("name")]] = UNSET
    """Items."""


NAMED = Cel(
    "has(self.name) && size(self.name) > 0",
    lambda value: bool(value.get("name")),
    "must be set and not empty",
    sentence="`name` is set and not empty.",
    field="name",
    reason=REQUIRED,
)


@declaration(NAMED)
class Named:
    """An object with a rule on its name."""

    name: Maybe[str] = UNSET
    """Name."""


@declaration()
class Group:
    """A list without a maximum."""

    named: Maybe[tuple[Named, ...]] = UNSET
    """Items."""


CASES = {
    "a valid object has no error": ({"name": "a", "parts": [{"name": "x", "weight": 100}]}, []),
    "a null member counts as absent": ({"name": "a", "role": None}, []),
    "a null item is an error": (
        {"name": "a", "parts": [None]},
        ["parts[0]: Invalid value: null: must be an object"],
    ),
    "a wrong type is explained in words": (
        {"name": 7, "left": "x", "right": 1.5, "alone": 1},
        [
            "name: Invalid value: 7: must be a string",
            "alone: Invalid value: 1: must be true or false",
            'left: Invalid value: "x": must be an integer',
            "left: Forbidden: may not be set together with `alone`",
            "right: Invalid value: 1.5: must be an integer",
            "right: Forbidden: may not be set together with `alone`",
        ],
    ),
    "an integer beyond 64 bits is an error": (
        {"name": "a", "left": 1, "right": 2**63, "ratio": 0.5},
        ["right: Invalid value: 9223372036854775808: must be less than or equal to 9223372036854775807"],
    ),
    "a pattern is explained in words, and a final newline does not match": (
        {"name": "a\n"},
        ['name: Invalid value: "a\\n": must be lower-case letters'],
    ),
    "an enum error lists the supported values": (
        {"name": "a", "role": "serve"},
        ['role: Unsupported value: "serve": supported values: "Serve", "Prefill"'],
    ),
    "a date-time must be valid": (
        {"name": "a", "since": "yesterday"},
        ['since: Invalid value: "yesterday": must be a valid date-time'],
    ),
    "maps and lists have bounds": (
        {"name": "a", "labels": {"k": "long", "l": "", "m": ""}, "parts": []},
        [
            "labels: Too many: 3: must have at most 2 items",
            "labels[k]: Too long: may not be more than 3 bytes",
            "parts: Invalid value: []: must have at least 1 item",
        ],
    ),
    "items of a list map have unique keys": (
        {"name": "a", "parts": [{"name": "x"}, {"name": "x", "weight": 101}]},
        [
            'parts[1]: Duplicate value: {"name":"x"}',
            "parts[1].weight: Invalid value: 101: must be less than or equal to 100",
        ],
    ),
}


@pytest.mark.parametrize(("value", "want"), CASES.values(), ids=CASES.keys())
def test_every_error_is_listed(value: Json, want: list[str]) -> None:
    """The errors are in the order of the fields."""
    assert [str(error) for error in validate(Thing, value)] == want


def test_a_rule_has_no_error_for_a_value_of_a_wrong_type() -> None:
    """The type is the only error, although an empty text replaces the value for rules."""
    found = validate(Named, {"name": 7})

    assert [str(error) for error in found] == ["name: Invalid value: 7: must be a string"]


@pytest.mark.parametrize(("count", "more"), [(100, []), (101, ["FieldValueTooMany"])])
def test_beyond_a_hundred_errors_of_rules_one_tells_that_there_are_more(count: int, more: list[str]) -> None:
    """A hundred are listed without it."""
    found = validate(Group, {"named": [{}] * count})

    assert [error.reason for error in found] == ["FieldValueRequired"] * 100 + more


def test_a_long_value_is_truncated_in_the_message() -> None:
    """A megabyte of text makes a short error."""
    (error,) = validate(Thing, {"name": "A" * 1_000_000})

    assert len(str(error)) < 400
    assert "1000002 characters" in str(error)
