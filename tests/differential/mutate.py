"""Mutations of objects in one place; most make the object invalid, others make it unusual."""

from __future__ import annotations

import copy
from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import SchemaNode
from differential import places
from differential.leaves import WORDS, junk, plain
from differential.texts import foreign_digits, near_misses

_LONGEST: Final = 1100
_MOST_ITEMS: Final = 70
_NUMBERS: Final = (0, -1, 1.0, -2.0, 1e3, 1.5, 2**31, 2**63 - 1, 2**63, -(2**63) - 1, 10**25, True, "1", "")
_MOMENTS: Final = (
    "2026-02-30T00:00:00Z",
    "2026-01-01",
    "2026-01-01T00:00:00",
    "2026-01-01 00:00:00Z",
    "2026-01-01t00:00:00z",
    "2026-01-01T24:00:00Z",
    "2026-01-01T23:59:60Z",
    "2026-01-01T00:00:00+25:00",
    "2026-01-01T00:00:00,5Z",
    "2026-01-01T00:0-:00Z",
    "2026-01-01T0/:00:00Z",
    "2026-01-01T00:00:00Z, the first of its year",
    "yesterday",
)


class Fresh(Protocol):
    """Generates a value that is valid by the schema of a node."""

    def __call__(self, node: SchemaNode, random: Random, level: int = 0) -> JsonValue:
        """Return the value."""


Change = Callable[[places.Place, Random], None]


def mutated(root: SchemaNode, value: Json, random: Random, *, fresh: Fresh) -> str:
    """Change an object in one place, and return a short description of the change."""
    found = list(places.each(root, value))
    if not found:
        return "nothing to change"
    place = random.choice(found)
    fitting = _fitting(place) | {"another valid value": lambda at, rng: at.put(fresh(at.node, rng, 2))}
    if place.node.properties and isinstance(place.value, dict):
        fitting |= {"a member more": lambda at, rng: _add_member(at, rng, fresh)}
    name = random.choice([*fitting, "another type", "nothing", "null"])
    {**fitting, **_ANYWHERE}[name](place, random)
    return f"{place.path}: {name}"


def _fitting(place: places.Place) -> dict[str, Change]:
    node, value = place.node, place.value
    if isinstance(value, str):
        return {**_TEXT, **(_MOMENT if node.keywords.get("format") == "date-time" else {})}
    if isinstance(value, bool):
        return {}
    if isinstance(value, int | float):
        return _NUMBER
    if isinstance(value, list):
        return _LIST if value else {"an item": lambda at, random: at.put([junk(random)])}
    if isinstance(value, dict):
        return _OBJECT | (_MAP if node.values is not None else {})
    return {}


def _another_type(place: places.Place, random: Random) -> None:
    place.put(random.choice(["text", "", 1, 0, 2.0, 1.5, True, [], {}, [None], [{}], {"x": 1}]))


def _longer(place: places.Place, random: Random) -> None:
    most = min(place.node.keywords.get("maxLength", 64), _LONGEST)
    place.put(place.value + plain(random, max(0, most + random.choice((0, 1, 1)) - len(place.value))))


def _shorter(place: places.Place, random: Random) -> None:
    least = place.node.keywords.get("minLength", 1)
    place.put(place.value[: max(0, least - random.choice((0, 1, 1)))])


def _beyond(place: places.Place, random: Random) -> None:
    bounds = [place.node.keywords[name] for name in ("minimum", "maximum") if name in place.node.keywords]
    bound = random.choice(bounds or [0])
    place.put(random.choice((bound - 1, bound, bound + 1, float(bound), bound + 0.5)))


def _more_items(place: places.Place, random: Random) -> None:
    items, most = place.value, place.node.keywords.get("maxItems", 8)
    wanted = min(most + random.choice((0, 1, 4)), _MOST_ITEMS)
    items += [copy.deepcopy(random.choice(items)) for _ in range(wanted - len(items))]


def _twice(place: places.Place, random: Random) -> None:
    place.value.insert(random.randrange(len(place.value) + 1), copy.deepcopy(random.choice(place.value)))


def _other_order(place: places.Place, random: Random) -> None:
    random.shuffle(place.value)


def _null_item(place: places.Place, random: Random) -> None:
    place.value.insert(random.randrange(len(place.value) + 1), None)


def _unknown_member(place: places.Place, random: Random) -> None:
    place.value[random.choice(["unknown", "", "Name", "a/b", "~", "é"])] = junk(random)


def _member_out(place: places.Place, random: Random) -> None:
    if place.value:
        del place.value[random.choice(list(place.value))]


def _members_swapped(place: places.Place, random: Random) -> None:
    names = list(place.value)
    if len(names) > 1:
        one, other = random.sample(names, 2)
        place.value[one], place.value[other] = place.value[other], place.value[one]


def _more_members(place: places.Place, random: Random) -> None:
    most = min(place.node.keywords.get("maxProperties", 3), _MOST_ITEMS)
    value = random.choice(list(place.value.values())) if place.value else "1"
    for rank in range(max(0, most + random.choice((0, 1)) - len(place.value))):
        place.value[f"more{rank}"] = copy.deepcopy(value)


def _add_member(place: places.Place, random: Random, fresh: Fresh) -> None:
    absent = [prop for prop in place.node.properties if prop.name not in place.value]
    if absent:
        prop = random.choice(absent)
        place.value[prop.name] = fresh(prop.node, random, 3)


_ANYWHERE: Final[dict[str, Change]] = {
    "another type": _another_type,
    "nothing": lambda place, _: place.remove(),
    "null": lambda place, _: place.put(None),
}
_TEXT: Final[dict[str, Change]] = {
    "a near miss": lambda place, random: place.put(near_misses(place.value, random)),
    "another near miss": lambda place, random: place.put(near_misses(place.value, random)),
    "digits of another alphabet": lambda place, _: place.put(foreign_digits(place.value)),
    "too long": _longer,
    "too short": _shorter,
}
_MOMENT: Final[dict[str, Change]] = {
    "an odd moment": lambda place, random: place.put(random.choice(_MOMENTS))
}
_NUMBER: Final[dict[str, Change]] = {
    "beyond a bound": _beyond,
    "an odd number": lambda place, random: place.put(random.choice(_NUMBERS)),
}
_LIST: Final[dict[str, Change]] = {
    "many items": _more_items,
    "an item twice": _twice,
    "another order": _other_order,
    "a null item": _null_item,
    "empty items": lambda place, _: place.put([{} for _ in range(_MOST_ITEMS)]),
    "no items": lambda place, _: place.value.clear(),
}
_MAP: Final[dict[str, Change]] = {
    "an empty key": lambda place, random: place.value.update({"": junk(random)})
}
_OBJECT: Final[dict[str, Change]] = {
    "an unknown member": _unknown_member,
    "a member out": _member_out,
    "members swapped": _members_swapped,
    "many members": _more_members,
    "empty": lambda place, _: place.value.clear(),
    "keys": lambda place, random: place.value.update({random.choice(WORDS): junk(random)}),
}
