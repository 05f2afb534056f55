"""Evaluation of the rules of a declaration: which ones a value breaks, and all their errors.

A schema tree is first reduced to the nodes that have rules. From the reduced tree, a function is generated
that visits only these nodes and finds the rules that a value breaks. Only those produce errors: for a valid
value no path or message is built.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.generated import function, indent
from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import Node
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Rule, Transition, call_source
from apiserver.schema.shape import FREE_LEVELS, NESTING, Blank, is_deeper_than

Broken: TypeAlias = tuple[Rule, JsonValue, tuple[str | int, ...]]
"""A rule, the value that breaks it, and the parts of its path."""

Finder: TypeAlias = Callable[[JsonValue], list[Broken]]
"""A function that finds the broken rules on and below a value of valid types."""

_NOWHERE: Final = FieldPath()
_BLANK: Final = Blank()


@dataclass(frozen=True, slots=True)
class UniqueKeys(Rule):
    """The items of a list map must have distinct keys. The API server enforces this by the list type."""

    names: tuple[str, ...]

    def check(self, value: list[JsonValue], path: FieldPath) -> Sequence[FieldError]:
        """Return an error for each item with the keys of an earlier one."""
        found: list[FieldError] = []
        seen: set[tuple[str, ...]] = set()
        for position, item in enumerate(value):
            key = item_key(item, self.names)
            if key and key in seen:
                keys = {name: item[name] for name in self.names if name in item}
                found.append(errors.duplicate(path.index(position), keys))
            seen.add(key)
        return found

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return the condition; in most lists the first key alone shows that no two items have the same."""
        first = f"{{item.get({self.names[0]!r}) for item in {value}}}"
        check = call_source(self.check, value, known)
        return f"len({value}) > 1 and len({first}) != len({value}) and {check}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Unique by {', '.join(self.names)}."


@dataclass(frozen=True, slots=True)
class Shallow(Rule):
    """Free JSON must not be nested too deeply to be processed. OpenAPI has no keyword for this."""

    def check(self, value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
        """Return the error, if any."""
        return [errors.too_deep(path, FREE_LEVELS)] if is_deeper_than(value, FREE_LEVELS) else ()

    def condition(self, value: str, known: dict[str, Any]) -> str:
        """Return the condition; in most values no member is an object or a list."""
        known["nesting"] = NESTING
        members = f"{value}.values() if type({value}) is dict else {value} if type({value}) is list else ()"
        return f"not nesting.isdisjoint(map(type, {members})) and {call_source(self.check, value, known)}"

    def english(self) -> str:
        """Return the rule as a sentence."""
        return f"Nested {FREE_LEVELS} levels deep at most."


@dataclass(frozen=True, kw_only=True, slots=True)
class Ruled:
    """A node reduced to what has rules. At most `most` items of a list are checked."""

    rules: tuple[Rule, ...]
    keys: tuple[str, ...]
    most: int | None
    members: tuple[tuple[str, Ruled], ...]
    items: Ruled | None
    values: Ruled | None


def rules_on(node: Node, is_meant: Callable[[Rule], bool]) -> Ruled | None:
    """Return a node reduced to the rules that `is_meant` accepts, or None if it has none."""
    keys = tuple(node.keywords.get("x-kubernetes-list-map-keys", ()))
    implied = ([UniqueKeys(keys)] if keys else []) + ([Shallow()] if node.type == "any" else [])
    rules = tuple(rule for rule in (*node.rules, *implied) if is_meant(rule))
    below = ((prop.name, rules_on(prop.node, is_meant)) for prop in node.properties)
    members = tuple((name, ruled) for name, ruled in below if ruled is not None)
    items = None if node.items is None else rules_on(node.items, is_meant)
    values = None if node.values is None else rules_on(node.values, is_meant)
    if not rules and not members and items is None and values is None:
        return None
    most = node.keywords.get("maxItems")
    return Ruled(rules=rules, keys=keys, most=most, members=members, items=items, values=values)


def is_check(rule: Rule) -> bool:
    """Tell whether a rule applies to a value alone."""
    return not isinstance(rule, Transition)


def is_transition(rule: Rule) -> bool:
    """Tell whether a rule applies to the change of a value."""
    return isinstance(rule, Transition)


def finder(here: Ruled) -> Finder:
    """Return a function that finds the rules that a value breaks, in the order of the tree.

    Paths are built only for broken rules.
    """
    known: dict[str, Any] = {}
    body = ["found = []", *_source(here, known, place="", depth=0), "return found"]
    find: Finder = function("v0", body, known, about="rules of a declaration")
    return find


def _source(here: Ruled, known: dict[str, Any], *, place: str, depth: int) -> Iterator[str]:
    """Yield the source lines for a node; `place` is its path, as source text of the items of a tuple."""
    value, inside, entry = f"v{depth}", f"v{depth + 1}", f"e{depth + 1}"
    if here.most is not None:
        yield f"if len({value}) > {here.most}: {value} = {value}[:{here.most}]"
    for rule in here.rules:
        name = f"rule{len(known)}"
        known[name] = rule
        yield f"if {rule.condition(value, known)}: found.append(({name}, {value}, ({place})))"
    for member, below in here.members:
        yield f"if {member!r} in {value}:"
        yield f" {inside} = {value}[{member!r}]"
        yield from indent(_source(below, known, place=f"{place}{member!r}, ", depth=depth + 1))
    if here.items is not None:
        yield f"for {entry}, {inside} in enumerate({value}):"
        yield from indent(_source(here.items, known, place=f"{place}{entry}, ", depth=depth + 1))
    if here.values is not None:
        yield f"for {entry}, {inside} in {value}.items():"
        key = f"{place}'[' + {entry} + ']', "
        yield from indent(_source(here.values, known, place=key, depth=depth + 1))


def rule_errors(found: Iterable[Broken]) -> Iterator[FieldError]:
    """Yield every error of the broken rules."""
    for rule, value, parts in found:
        path = FieldPath(parts)
        for error in rule.check(value, path):
            yield FieldError(error.path, error.reason, error.body, path)


def change_errors(
    here: Ruled, old: JsonValue, new: JsonValue, path: FieldPath = _NOWHERE
) -> Iterator[FieldError]:
    """Yield every error of transition rules between two values of valid types.

    Items of a list map are compared with those of the same keys; items of other lists have no old value.
    """
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
    """Return the keys of an item of a list map; empty if one is missing or of a wrong type."""
    found = [f"{name}={item[name]!r}" for name in names if not isinstance(item.get(name, _BLANK), Blank)]
    return tuple(found) if len(found) == len(names) else ()
