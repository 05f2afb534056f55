"""Evaluation of the rules of a declaration on a value and on a change, and ratcheting validation.

A schema tree is first reduced to the nodes that have rules, and only these are visited.

Rules become stricter from release to release, and an object that was once accepted must remain editable. As
on the API server, a rule applies to an update only if the value that it concerns has changed. Source:
`k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from functools import partial
from typing import Final

from apiserver.schema import errors
from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.model import Reduced, SchemaNode, node_of, reduce_node
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
    if len({tuple(map(item.get, names)) for item in value}) == len(value):
        return ()
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


def rules_on(node: SchemaNode, is_meant: Callable[[ValidationRule], bool]) -> Reduced[ValidationRule]:
    """Return a node reduced to the rules that `is_meant` accepts."""

    def own(here: SchemaNode) -> tuple[ValidationRule, ...]:
        keys = tuple(here.keywords.get("x-kubernetes-list-map-keys", ()))
        implied = ([UniqueKeys(keys)] if keys else []) + ([_SHALLOW] if here.type == "any" else [])
        return tuple(rule for rule in (*here.rules, *implied) if is_meant(rule))

    return reduce_node(node, own)


def is_check(rule: ValidationRule) -> bool:
    """Tell whether a rule applies to a value alone."""
    return not isinstance(rule, Transition)


def is_transition(rule: ValidationRule) -> bool:
    """Tell whether a rule applies to the change of a value."""
    return isinstance(rule, Transition)


def rule_errors(here: Reduced[ValidationRule], value: JsonValue) -> Iterator[FieldError]:
    """Yield the errors of a value of valid types by the rules on and below it, in the order of the tree.

    A rule that is broken is evaluated again with the path, which is not built for all others.
    """
    # A stack instead of recursion. What is pushed last comes first, so children are pushed in reverse.
    waiting: list[tuple[Reduced[ValidationRule], JsonValue, tuple[str | int, ...]]] = [(here, value, ())]
    while waiting:
        here, value, parts = waiting.pop()
        if here.most is not None and len(value) > here.most:
            value = value[: here.most]
        for rule in here.own:
            if rule.check(value, _NOWHERE):
                path = FieldPath(parts)
                yield from (replace(error, scope=path) for error in rule.check(value, path))
        if here.members:
            for name, below in reversed(here.members):
                if name in value:
                    waiting.append((below, value[name], (*parts, name)))
        elif (each := here.items) is not None:
            waiting += [(each, item, (*parts, position)) for position, item in enumerate(value)][::-1]
        elif (each := here.values) is not None:
            waiting += [(each, item, (*parts, f"[{key}]")) for key, item in value.items()][::-1]


def change_errors(
    here: Reduced[ValidationRule], old: JsonValue, new: JsonValue, path: FieldPath = _NOWHERE
) -> Iterator[FieldError]:
    """Yield every error of transition rules between two values of valid types.

    Items of a list map are compared with those of the same keys; items of other lists have no old value.
    """
    for rule in here.own:
        if isinstance(rule, Transition):
            yield from rule.compare(old, new, path)
    for name, below in here.members:
        if name in old and name in new:
            yield from change_errors(below, old[name], new[name], path.child(name))
    if here.values is not None:
        for key in old.keys() & new.keys():
            yield from change_errors(here.values, old[key], new[key], path.key(key))
    if here.items is not None and here.keys:
        past = {item_key(item, here.keys): item for item in old}
        for position, item in enumerate(new):
            if (key := item_key(item, here.keys)) in past:
                yield from change_errors(here.items, past[key], item, path.index(position))


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
