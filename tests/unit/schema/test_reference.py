"""Reference pages: the line of each sort of field, and the rules of types."""

from __future__ import annotations

from typing import Annotated, Any

import pytest

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.errors import REQUIRED
from apiserver.schema.kind import Kind, Version
from apiserver.schema.markers import Format, Items, Length, MapKeys, Pattern, Range
from apiserver.schema.reference import kind_page
from apiserver.schema.rules import AtMostOneOf, Cel, Within

NAMED = Cel(
    "has(self.name) && size(self.name) > 0",
    lambda value: bool(value.get("name")),
    "must be set and not empty",
    sentence="`name` is set and not empty.",
    field="name",
    reason=REQUIRED,
)


@declaration(AtMostOneOf(("name", "age")))
class Part:
    """A part."""

    name: Annotated[str, Length(1, 8)] = "x"
    """Name of the part."""

    age: Maybe[int] = UNSET
    """Age of the part."""


@declaration()
class Nothing:
    """A type that has no fields yet."""


@declaration()
class Thing:
    """One field of each sort."""

    count: Annotated[int, Range(0, 9)]
    """A number."""

    name: Annotated[str, Pattern(r"^(a|b)$", says="a or b")] = "a"
    """A text."""

    is_on: bool = True
    """A choice."""

    pause: Maybe[Annotated[str, Within("0s", "1h")]] = UNSET
    """A length of time."""

    since: Maybe[Annotated[str, Format("date-time")]] = UNSET
    """A moment."""

    amount: Maybe[int | str] = UNSET
    """A quantity."""

    free: Maybe[Any] = UNSET
    """Anything."""

    names: Annotated[tuple[Annotated[str, Length(1, 8)], ...], Items(maximum=2)] = ("a", "b")
    """Texts."""

    labels: Maybe[dict[str, Annotated[str, Length(maximum=3)]]] = UNSET
    """A map."""

    parts: Annotated[tuple[Part, ...], MapKeys("name")] = (Part(age=1),)
    """Objects."""

    part: Maybe[Annotated[Part, NAMED]] = UNSET
    """An object of which more is demanded than of others."""

    nothing: Nothing = Nothing()
    """An object without fields."""


def page(*short_names: str) -> str:
    """Return the reference page of a kind of the type above."""
    return kind_page(
        Kind(
            group="example.com",
            kind="Thing",
            plural="things",
            short_names=short_names,
            categories=(),
            versions=(Version(name="v1", declaration=Thing, columns=(), is_storage=True),),
        )
    )


LINES = {
    "a number": "| `count` _integer_ | A number. |  | Required<br />Minimum: 0<br />Maximum: 9 |",
    "a pattern, its explanation and its default": (
        "| `name` _string_ | A text. Must be a or b. | a | Pattern: `^(a\\|b)$` |"
    ),
    "a boolean default": "| `isOn` _boolean_ | A choice. | true |  |",
    "a rule on a text": "| `pause` _string_ | A length of time. |  | Between 0s and 1h. |",
    "a format": "| `since` _string_ | A moment. |  | Format: date-time |",
    "an integer or a string": "| `amount` _integer or string_ | A quantity. |  |  |",
    "free JSON": "| `free` _JSON_ | Anything. |  |  |",
    "constraints on items": (
        "| `names` _string array_ | Texts. | a, b | MaxItems: 2<br />Each: MinLength: 1; MaxLength: 8 |"
    ),
    "constraints on values": "| `labels` _map of string_ | A map. |  | Each: MaxLength: 3 |",
    "a default of objects, as JSON": (
        '| `parts` _Part array_ | Objects. | `[{"name": "x", "age": 1}]` | Unique by: name |'
    ),
    "a rule on one use of a type": (
        "| `part` _Part_ | An object of which more is demanded than of others. |  |"
        " `name` is set and not empty. |"
    ),
    "an object whose default consists of its fields": (
        "| `nothing` _Nothing_ | An object without fields. |  |  |"
    ),
}


@pytest.mark.parametrize("line", LINES.values(), ids=LINES.keys())
def test_each_field_has_a_line(line: str) -> None:
    """The line has the type, the description, the default and all constraints."""
    assert line in page().splitlines()


def test_a_type_lists_only_its_own_rules() -> None:
    """Rules on one use of the type are listed at that use."""
    part = page().partition("### Part\n")[2].partition("\n### ")[0]

    assert "- At most one of `name` and `age` may be set." in part
    assert "is set and not empty" not in part


def test_a_type_without_fields_has_no_table() -> None:
    """A table header without rows would look like a mistake."""
    assert page().endswith("### Nothing\n\nA type that has no fields yet.\n")


@pytest.mark.parametrize(
    ("short_names", "want"),
    [
        pytest.param((), "Group `example.com`, namespaced.", id="no short name"),
        pytest.param(("th",), "Group `example.com`, short name `th`, namespaced.", id="one short name"),
        pytest.param(
            ("t", "th"), "Group `example.com`, short names `t`, `th`, namespaced.", id="two short names"
        ),
    ],
)
def test_short_names_are_listed(short_names: tuple[str, ...], want: str) -> None:
    """Without any, they are not mentioned."""
    assert want in page(*short_names).splitlines()
