"""Strict decoding errors: undeclared fields and duplicate names.

The API server rejects them before admission. kubectl itself silently drops duplicates (the last one wins), so
this rejects more than kubectl does, and the same as a server that receives the file unchanged. Paths and
order are those of the server: sorted, and no brackets around keys. Source:
`k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning/algorithm.go`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.metadata import MEMBERS, OWNER_MEMBERS
from apiserver.schema.model import Node
from apiserver.schema.paths import FieldPath
from controller.commands.check.result import Finding
from controller.commands.check.tree import Tree

_STANDARD: Final = frozenset({"apiVersion", "kind", "metadata"})


@dataclass(frozen=True, kw_only=True, slots=True)
class StrictError:
    """A field that strict decoding rejects: `unknown` or `duplicate`."""

    word: str
    path: FieldPath
    line: int

    def __str__(self) -> str:
        return f'{self.word} field "{self.path}"'


def undecodable(tree: Tree, root: Node) -> Iterator[Finding]:
    """Yield the strict decoding errors of an object as findings."""
    for error in strict_errors(tree, root):
        reason = f"{error.word.capitalize()}Field"
        yield Finding(field=str(error.path), reason=reason, message=str(error), line=error.line)


def strict_errors(tree: Tree, root: Node) -> list[StrictError]:
    """Return the strict decoding errors of an object: duplicates first, then unknown fields."""
    unknown = (*sorted(_unknown_metadata(tree.value), key=str), *_sorted_unknown(tree.value, root))
    return [
        *duplicates(tree),
        *(StrictError(word="unknown", path=path, line=tree.line_of(path)) for path in unknown),
    ]


def duplicates(tree: Tree) -> list[StrictError]:
    """Return the fields that occur more than once, each by its second line."""
    twice: dict[FieldPath, StrictError] = {}
    for error in sorted(_repetitions(tree), key=lambda error: error.line):
        twice.setdefault(error.path, error)
    return list(twice.values())


def _repetitions(tree: Tree) -> Iterator[StrictError]:
    waiting = [(tree.value, FieldPath())]
    while waiting:
        value, path = waiting.pop()
        for name, line in tree.marks_of(value).repeated:
            yield StrictError(word="duplicate", path=path.child(name), line=line)
        waiting += [(item, inner) for item, inner in _children(value, path) if isinstance(item, dict | list)]


def _children(value: JsonValue, path: FieldPath) -> Iterator[tuple[JsonValue, FieldPath]]:
    if isinstance(value, dict):
        yield from ((item, path.child(name)) for name, item in value.items())
    elif isinstance(value, list):
        yield from ((item, path.index(position)) for position, item in enumerate(value))


def _unknown_metadata(value: Json) -> Iterator[FieldPath]:
    metadata, path = value.get("metadata"), FieldPath().child("metadata")
    if not isinstance(metadata, dict):
        return
    yield from (path.child(name) for name in metadata if name not in MEMBERS)
    owners = metadata.get("ownerReferences")
    for position, owner in enumerate(owners if isinstance(owners, list) else []):
        here = path.child("ownerReferences").index(position)
        names = owner if isinstance(owner, dict) else ()
        yield from (here.child(name) for name in names if name not in OWNER_MEMBERS)


def _sorted_unknown(value: Json, root: Node) -> list[FieldPath]:
    bare = {name: item for name, item in value.items() if name not in _STANDARD}
    return sorted(_unknown(bare, root, FieldPath()), key=str)


def _unknown(value: JsonValue, node: Node | None, path: FieldPath) -> Iterator[FieldPath]:
    if node is not None and (node.type == "any" or node.keywords.get("x-kubernetes-preserve-unknown-fields")):
        return
    if isinstance(value, list):
        for position, item in enumerate(value):
            yield from _unknown(item, node.items if node else None, path.index(position))
    elif isinstance(value, dict):
        for name, item in value.items():
            prop = node.property(name) if node else None
            if prop is not None:
                yield from _unknown(item, prop.node, path.child(name))
            elif node is not None and node.values is not None:
                yield from _unknown(item, node.values, path.child(name))
            else:
                yield path.child(name)
