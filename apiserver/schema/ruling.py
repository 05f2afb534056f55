"""Evaluation of the rules of a declaration on a value and on a change, and ratcheting validation.

A schema tree is first reduced to the nodes that have rules, and only these are visited.

Rules become stricter from release to release, and an object that was once accepted must remain editable. As
on the API server, a rule applies to an update only if the value that it concerns has changed. Source:
`k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import partial
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.model import SchemaNode, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.rules import Transition, ValidationRule, WebhookOnly
from apiserver.schema.shape import FREE_LEVELS, Blank, is_deeper_than

_NOWHERE: Final = FieldPath()
_BLANK: Final = Blank()


class UniqueKeys(ValidationRule):
    """The items of a list map must have distinct keys. The API server enforces this by the list type."""

    def __init__(self, names: tuple[str, ...]) -> None:
        super().__init__(partial(_repeated_keys, names), f"Unique by {', '.join(names)}.")


def _repeated_keys(names: tuple[str, ...], value: list[JsonValue], path: FieldPath) -> Sequence[FieldError]:
    """Return an error for each item with the keys of an earlier one."""
    problems: list[FieldError] = []
    seen: set[tuple[JsonValue, ...]] = set()
    for position, item in enumerate(value):
        key = item_key(item, names)
        if key and key in seen:
            keys = {name: item[name] for name in names if name in item}
            problems.append(errors.duplicate(path.index(position), keys))
        seen.add(key)
    return problems


def _too_deep(value: JsonValue, path: FieldPath) -> Sequence[FieldError]:
    return [errors.too_deep(path, FREE_LEVELS)] if is_deeper_than(value, FREE_LEVELS) else ()


_SHALLOW: Final = WebhookOnly(_too_deep, f"Nested {FREE_LEVELS} levels deep at most.")
"""Free JSON must not be nested too deeply to be processed. OpenAPI has no keyword for this."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RuleTree:
    """A node reduced to what has rules. At most `most` items of a list are checked."""

    rules: tuple[ValidationRule, ...]
    keys: tuple[str, ...]
    most: int | None
    members: tuple[tuple[str, RuleTree], ...]
    each: RuleTree | None
    """The items of a list, or the values of a map."""


def rules_on(node: SchemaNode, is_meant: Callable[[ValidationRule], bool]) -> RuleTree:
    """Return a node reduced to the rules that `is_meant` accepts."""
    keys = tuple(node.keywords.get("x-kubernetes-list-map-keys", ()))
    implied = ([UniqueKeys(keys)] if keys else []) + ([_SHALLOW] if node.type == "any" else [])
    members = ((prop.name, _some_rules_on(prop.node, is_meant)) for prop in node.properties)
    return RuleTree(
        rules=tuple(rule for rule in (*node.rules, *implied) if is_meant(rule)),
        keys=keys,
        most=node.keywords.get("maxItems"),
        members=tuple((name, below) for name, below in members if below is not None),
        each=_some_rules_on(node.items or node.values, is_meant),
    )


def _some_rules_on(node: SchemaNode | None, is_meant: Callable[[ValidationRule], bool]) -> RuleTree | None:
    here = None if node is None else rules_on(node, is_meant)
    return here if here is not None and (here.rules or here.members or here.each) else None


def is_check(rule: ValidationRule) -> bool:
    """Tell whether a rule applies to a value alone."""
    return not isinstance(rule, Transition)


def is_transition(rule: ValidationRule) -> bool:
    """Tell whether a rule applies to the change of a value."""
    return isinstance(rule, Transition)


def rule_errors(here: RuleTree, value: JsonValue, parts: tuple[str | int, ...] = ()) -> Iterator[FieldError]:
    """Yield the errors of a value of valid types by the rules on and below it, in the order of the tree.

    `parts` are those of its path.
    """
    if here.most is not None:
        value = value[: here.most]
    path = FieldPath(parts)
    for rule in here.rules:
        for error in rule.check(value, path):
            yield FieldError(error.path, error.reason, error.body, path)
    for name, below in here.members:
        if name in value:
            yield from rule_errors(below, value[name], (*parts, name))
    if here.each is not None:
        for part, item in enumerate(value) if isinstance(value, list) else _entries(value):
            yield from rule_errors(here.each, item, (*parts, part))


def _entries(value: Json) -> Iterator[tuple[str, JsonValue]]:
    return ((f"[{key}]", item) for key, item in value.items())


def change_errors(
    here: RuleTree, old: JsonValue, new: JsonValue, path: FieldPath = _NOWHERE
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
    for below, before, after, inside in _kept_entries(here, old, new, path):
        yield from change_errors(below, before, after, inside)


def _kept_entries(
    here: RuleTree, old: JsonValue, new: JsonValue, path: FieldPath
) -> Iterator[tuple[RuleTree, JsonValue, JsonValue, FieldPath]]:
    """Yield the entries of a list map or map that both values have."""
    if here.each is None:
        return
    if isinstance(new, dict):
        for key in old.keys() & new.keys():
            yield here.each, old[key], new[key], path.key(key)
    elif here.keys:
        past = {item_key(item, here.keys): item for item in old}
        for position, item in enumerate(new):
            if (key := item_key(item, here.keys)) in past:
                yield here.each, past[key], item, path.index(position)


def item_key(item: Json, names: tuple[str, ...]) -> tuple[JsonValue, ...]:
    """Return the keys of an item of a list map; empty if one is missing or of a wrong type."""
    key = tuple([item.get(name, _BLANK) for name in names])
    return () if Blank in map(type, key) else key


_NOTHING: Final = object()


def is_forgiven(
    declared: type, error: FieldError, *, old: Json, new: Json, stored: AbstractSet[FieldError]
) -> bool:
    """Tell whether the value that an error concerns is unchanged from the stored object.

    `stored` has the errors of the stored object: a rule over several fields is not newly broken if the same
    error exists there and its field is unchanged. Items of a list map are compared with those of the same
    keys, other items with those at the same position or any equal one. A rule on the whole object is compared
    by its spec, since labels and other metadata do not count as a change.
    """
    if _is_same(declared, error.about.parts or ("spec",), old, new):
        return True
    if error not in stored:
        return False
    return error.reason == "FieldValueDuplicate" or _is_same(declared, error.path.parts, old, new)


def _is_same(declared: type, parts: tuple[str | int, ...], old: JsonValue, new: JsonValue) -> bool:
    node: SchemaNode | None = node_of(declared)
    for part in parts:
        old, new = _past_of(node, old, new, part), _at(new, part)
        node = _node_below(node, part)
    return old is not _NOTHING and same(old, new) if new is not _NOTHING else old is _NOTHING


def _past_of(node: SchemaNode | None, old: JsonValue, new: JsonValue, part: str | int) -> JsonValue:
    keys = tuple(node.keywords.get("x-kubernetes-list-map-keys", ())) if node else ()
    item = _at(new, part)
    if isinstance(old, list) and any(same(past, item) for past in old):
        return item
    if not keys or not isinstance(item, dict) or not isinstance(old, list):
        return _at(old, part)
    key = item_key(item, keys)
    past = [it for it in old if isinstance(it, dict) and item_key(it, keys) == key]
    return past[0] if key and past else _NOTHING


def _at(value: JsonValue, part: str | int) -> JsonValue:
    if isinstance(part, int):
        return value[part] if isinstance(value, list) and part < len(value) else _NOTHING
    return value.get(FieldPath.member(part), _NOTHING) if isinstance(value, dict) else _NOTHING


def _node_below(node: SchemaNode | None, part: str | int) -> SchemaNode | None:
    if node is None or isinstance(part, int):
        return node.items if node else None
    prop = node.property(part)
    return prop.node if prop else node.values
