"""Generation of objects from a declaration; equal numbers give equal objects.

Half of the objects are valid, 40 % have one change to a valid object, and 10 % have several. Rules are met by
repair: each field for which our judge has an error is generated again, set or removed. If our judge is wrong,
the other judges disagree.
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import Final

from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import Property, SchemaNode, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import item_key
from apiserver.schema.validation import validate
from differential import places
from differential.leaves import WORDS, leaf
from differential.mutate import mutated

NAME: Final = "judged"
"""The name of every object."""

_NAMED: Final = re.compile(r"""["'](\S+?)["']""")
"""Quoted words in an error message are often valid values."""

_MENDINGS: Final = 40
_LESSONS: Final = 150
_FULL: Final = 0.04
_MOST_OPTIONAL: Final = (0, 1, 1, 2, 2, 3, 4)
_DEEP: Final = 7


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """One object to judge, with its origin and its JSON text."""

    version: str
    number: int
    sort: str
    """`valid`, `mutated` or `wild`."""

    change: str
    """A description of the changes; empty for a valid object."""

    body: bytes


def case(kind: Kind, version: Version, number: int) -> Case:
    """Return the object with the given number."""
    random = Random(f"{kind.crd_name}/{version.name}/{number}")
    maker = maker_of(version.declaration)
    share = random.random()
    value = maker.valid(random)
    changes: list[str] = []
    if share >= 0.5:
        node, count = node_of(version.declaration), 1 if share < 0.9 else random.randint(2, 6)
        changes = [mutated(node, value, random, fresh=maker.fresh) for _ in range(count)]
    sort = "valid" if share < 0.5 else "mutated" if share < 0.9 else "wild"
    return Case(
        version=version.name,
        number=number,
        sort=sort,
        change=", ".join(changes),
        body=json.dumps(manifest(kind, version, value)).encode(),
    )


def cases(kind: Kind, version: Version, numbers: Iterable[int]) -> Iterator[Case]:
    """Yield the objects with the given numbers."""
    return (case(kind, version, number) for number in numbers)


def manifest(kind: Kind, version: Version, value: Json) -> Json:
    """Return an object with apiVersion, kind and metadata."""
    head = {"apiVersion": f"{kind.group}/{version.name}", "kind": kind.kind, "metadata": {"name": NAME}}
    return head | value


@functools.cache
def maker_of(declared: type) -> Maker:
    """Return the maker of a declaration, with texts that its rules accept."""
    random = Random(declared.__qualname__)
    learner = Maker(declared=declared)
    for _ in range(_LESSONS):
        learner.valid(random)
    liked = {key: tuple(dict.fromkeys(values)) for key, values in learner.noted.items() if values}
    return Maker(declared=declared, liked=liked)


@dataclass(frozen=True, kw_only=True, slots=True)
class Maker:
    """Generates objects of one declaration. `liked` and `noted` map the ID of a node to accepted texts."""

    declared: type
    liked: Mapping[int, tuple[JsonValue, ...]] = field(default_factory=dict)
    noted: dict[int, list[JsonValue]] = field(default_factory=dict)

    def valid(self, random: Random) -> Json:
        """Return an object that our judge accepts, unless the repair takes too many steps."""
        root = node_of(self.declared)
        value: Json = self.fresh(root, random)
        disliked: set[int] = set()
        for _ in range(_MENDINGS):
            found = validate(self.declared, {"metadata": {"name": NAME}} | value)
            if not found:
                break
            for error in found:
                path = error.path if random.random() < 0.9 else FieldPath(error.path.parts[:-1])
                place = places.find(root, value, path)
                if place is not None:
                    disliked.add(id(place.node))
                    self._mend(place, error, random)
        else:
            return value
        for place in places.each(root, value) if disliked and not self.liked else ():
            if id(place.node) in disliked and isinstance(place.value, str):
                self.noted.setdefault(id(place.node), []).append(place.value)
        return value

    def _mend(self, place: places.Place, error: FieldError, random: Random) -> None:
        reason, chance = error.reason, random.random()
        if reason in {"FieldValueForbidden", "FieldValueDuplicate"} and place.can_go:
            place.remove()
        elif reason == "FieldValueRequired" and isinstance(place.found, list) and place.node.items:
            place.found.append(self.fresh(place.node.items, random, level=len(place.path.parts)))
        elif reason != "FieldValueRequired" and place.can_go and chance < 0.2:
            place.remove()
        elif chance > 0.6 and isinstance(place.found, str) and (named := _NAMED.findall(error.body)):
            place.put(random.choice(named))
        elif chance > 0.7 and (like := place.siblings()):
            place.put(random.choice(like))
        else:
            place.put(self.fresh(place.node, random, level=len(place.path.parts)))

    def fresh(self, node: SchemaNode, random: Random, level: int = 0) -> JsonValue:
        """Return a value that is valid by the schema of a node; rules over several fields may be violated."""
        if node.properties:
            return {
                prop.name: self.fresh(prop.node, random, level + 1) for prop in _chosen(node, random, level)
            }
        if node.values is not None:
            return self._map(node, node.values, random, level=level)
        if node.items is not None:
            return self._list(node, node.items, random, level=level)
        if id(node) in self.liked and random.random() < 0.9:
            return random.choice(self.liked[id(node)])
        return {} if node.type == "object" else leaf(node, random)

    def _map(self, node: SchemaNode, values: SchemaNode, random: Random, *, level: int) -> Json:
        count = _count(node.keywords.get("minProperties", 0), node.keywords.get("maxProperties", 4), random)
        names = [*WORDS, *(f"key{rank}" for rank in range(count))]
        return {name: self.fresh(values, random, level + 1) for name in random.sample(names, count)}

    def _list(self, node: SchemaNode, items: SchemaNode, random: Random, *, level: int) -> list[JsonValue]:
        least, most = node.keywords.get("minItems", 0), node.keywords.get("maxItems", 4)
        keys = tuple(node.keywords.get("x-kubernetes-list-map-keys", ()))
        made = [self.fresh(items, random, level + 1) for _ in range(_count(least, most, random))]
        if not keys:
            return made
        return list({item_key(item, keys) or rank: item for rank, item in enumerate(made)}.values())


def _chosen(node: SchemaNode, random: Random, level: int) -> list[Property]:
    optional = [prop for prop in node.properties if not prop.is_required]
    count = random.choice(_MOST_OPTIONAL[: max(1, _DEEP - level)])
    if random.random() < _FULL / (1 + level):
        count = len(optional)
    names = {prop.name for prop in random.sample(optional, min(count, len(optional)))}
    return [prop for prop in node.properties if prop.is_required or prop.name in names]


def _count(least: int, most: int, random: Random) -> int:
    if most <= least + 8 and random.random() < 0.05:
        return int(most)
    return random.randint(least, min(most, least + 2))
