"""Ratcheting validation: an update is not rejected for values that it leaves unchanged.

Rules become stricter from release to release, and an object that was once accepted must remain editable. As
on the API server, a rule applies to an update only if the value that it concerns has changed. Source:
`k8s.io/apiextensions-apiserver/pkg/apiserver/validation/ratcheting.go`.
"""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Final

from apiserver.schema.errors import FieldError
from apiserver.schema.json import Json, JsonValue, same
from apiserver.schema.model import Node, node_of
from apiserver.schema.paths import FieldPath
from apiserver.schema.ruling import item_key

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
    node: Node | None = node_of(declared)
    for part in parts:
        old, new = _past_of(node, old, new, part), _at(new, part)
        node = _below(node, part)
    return old is not _NOTHING and same(old, new) if new is not _NOTHING else old is _NOTHING


def _past_of(node: Node | None, old: JsonValue, new: JsonValue, part: str | int) -> JsonValue:
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


def _below(node: Node | None, part: str | int) -> Node | None:
    if node is None or isinstance(part, int):
        return node.items if node else None
    prop = node.property(part)
    return prop.node if prop else node.values
