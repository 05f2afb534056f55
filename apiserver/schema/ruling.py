"""Walks the rules of a declaration over a raw value.

The declaration's tree is first cut down to the nodes that bear rules, so that a walk over a valid object
visits nothing else and builds no paths.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Rule, Transition
from apiserver.schema.shape import Blank

_NOWHERE: Final = FieldPath()
_BLANK: Final = Blank()
_WORTH_REMEMBERING: Final = 3
_FIRST_REMEMBERED_DEPTH: Final = 2
_MOST_REMEMBERED: Final = 512
# A blank is not the empty text that it looks like: what was found right with one says nothing of the other.
_encode: Final = msgspec.json.Encoder(enc_hook=lambda blank: [repr(type(blank))]).encode


@dataclass(frozen=True, slots=True)
class UniqueKeys(Rule):
    """The items of a list map differ in their keys. The server knows this from the list's type."""

    names: tuple[str, ...]

    def check(self, value: list[JsonValue], path: FieldPath) -> Iterator[FieldError]:
        """Yield one error for each item whose keys an earlier one has."""
        seen: set[tuple[str, ...]] = set()
        for position, item in enumerate(value):
            key = item_key(item, self.names)
            if key and key in seen:
                yield errors.duplicate(path.index(position), {n: item[n] for n in self.names if n in item})
            seen.add(key)

    def english(self) -> str:
        """Return the demand as a sentence."""
        return f"Unique by {', '.join(self.names)}."


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruled:
    """A node cut down to what bears rules; `most` items of a list are looked at."""

    has_transitions: bool
    weight: int
    """Nodes that bear rules, this one included."""
    memory: dict[bytes, None] | None
    """Digests of values found right, oldest first; only where remembering costs less than looking again."""

    rules: tuple[Rule, ...]
    keys: tuple[str, ...]
    most: int | None
    members: tuple[tuple[str, Ruled], ...]
    items: Ruled | None
    values: Ruled | None


@functools.cache
def ruled(declared: type) -> Ruled | None:
    """Return a declaration cut down to its rules, or None if it has none."""
    return _ruled(node_of(declared), depth=0)


def breaks_rules(here: Ruled, value: JsonValue) -> bool:
    """Tell whether a value whose types are right breaks any rule.

    Most parts of most objects have been seen before: `/validate` sees what `/mutate` saw, an update changes
    little, and the workers of a fleet are alike. So parts that were found right are remembered by a digest.
    """
    if here.memory is None:
        return _breaks_rules(here, value)
    digest = hashlib.blake2b(_encode(value), digest_size=16).digest()
    if digest in here.memory:
        return False
    if _breaks_rules(here, value):
        return True
    here.memory[digest] = None
    if len(here.memory) > _MOST_REMEMBERED:
        del here.memory[next(iter(here.memory))]
    return False


def _breaks_rules(here: Ruled, value: JsonValue) -> bool:
    for rule in here.rules:
        for _ in rule.check(value, _NOWHERE):
            return True
    for name, below in here.members:
        if name in value and breaks_rules(below, value[name]):
            return True
    if here.items is not None:
        return any(breaks_rules(here.items, item) for item in value)
    return here.values is not None and any(breaks_rules(here.values, item) for item in value.values())


def rule_errors(here: Ruled, value: JsonValue, path: FieldPath = _NOWHERE) -> Iterator[FieldError]:
    """Yield every breach of a rule in a value whose types are right."""
    if here.memory is not None and not breaks_rules(here, value):
        return
    looked_at = value[: here.most] if isinstance(value, list) else value
    for rule in here.rules:
        for error in rule.check(looked_at, path):
            yield replace(error, scope=path)
    for name, below in here.members:
        if name in value:
            yield from rule_errors(below, value[name], path.child(name))
    if here.items is not None:
        for position, item in enumerate(looked_at):
            yield from rule_errors(here.items, item, path.index(position))
    if here.values is not None:
        for key, item in value.items():
            yield from rule_errors(here.values, item, path.key(key))


def change_errors(
    here: Ruled, old: JsonValue, new: JsonValue, path: FieldPath = _NOWHERE
) -> Iterator[FieldError]:
    """Yield every breach of a transition rule between two values whose types are right.

    Items of a list map are held against those with the same keys; the items of other lists have no past.
    """
    if not here.has_transitions:
        return
    for rule in here.rules:
        if isinstance(rule, Transition):
            yield from rule.compare(old, new, path)
    for name, below in here.members:
        if name in old and name in new:
            yield from change_errors(below, old[name], new[name], path.child(name))
    if here.values is not None:
        for key in old.keys() & new.keys():
            yield from change_errors(here.values, old[key], new[key], path.key(key))
    if here.items is not None and here.keys:
        yield from _item_changes(here.items, here.keys, old, new, path=path)


def _item_changes(
    here: Ruled, keys: tuple[str, ...], old: list[JsonValue], new: list[JsonValue], *, path: FieldPath
) -> Iterator[FieldError]:
    past = {item_key(item, keys): item for item in old}
    for position, item in enumerate(new):
        if (key := item_key(item, keys)) in past:
            yield from change_errors(here, past[key], item, path.index(position))


def item_key(item: Json, names: tuple[str, ...]) -> tuple[str, ...]:
    """Return what tells an item of a list map from the others: nothing if it lacks a key of a right type."""
    found = tuple(f"{name}={item[name]!r}" for name in names if not isinstance(item.get(name, _BLANK), Blank))
    return found if len(found) == len(names) else ()


def _ruled(node: Node, depth: int) -> Ruled | None:
    keys = tuple(node.keywords.get("x-kubernetes-list-map-keys", ()))
    rules = (*node.rules, *([UniqueKeys(keys)] if keys else []))
    members = tuple((prop.name, below) for prop in node.properties if (below := _ruled(prop.node, depth + 1)))
    items = None if node.items is None else _ruled(node.items, depth + 1)
    values = None if node.values is None else _ruled(node.values, depth + 1)
    if not rules and not members and items is None and values is None:
        return None
    every = [*(member for _, member in members), *(inner for inner in (items, values) if inner)]
    weight = 1 + sum(inner.weight for inner in every)
    return Ruled(
        rules=rules,
        keys=keys,
        most=node.keywords.get("maxItems"),
        members=members,
        items=items,
        values=values,
        has_transitions=any(isinstance(rule, Transition) for rule in rules)
        or any(inner.has_transitions for inner in every),
        weight=weight,
        memory={} if _is_remembered(node, depth, weight) else None,
    )


def _is_remembered(node: Node, depth: int, weight: int) -> bool:
    return bool(node.properties) and depth >= _FIRST_REMEMBERED_DEPTH and weight >= _WORTH_REMEMBERING
