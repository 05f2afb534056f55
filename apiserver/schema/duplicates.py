"""Duplicate fields in YAML text: parsers accept them, and the last one silently wins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import yaml

from apiserver.schema.paths import FieldPath

_MERGE: Final = "tag:yaml.org,2002:merge"


@dataclass(frozen=True, kw_only=True, slots=True)
class DuplicateField:
    """A field that its mapping already has, and the line on which it occurs again."""

    path: FieldPath
    line: int

    def __str__(self) -> str:
        return f'duplicate field "{self.path}": keep one of them'


def duplicate_fields(text: str) -> list[DuplicateField]:
    """Return the duplicate fields of YAML text by line. It can be loaded, so that keys are scalars.

    The loader is that of `safe_load`: another one does not accept exactly the same texts.
    """
    roots = list(yaml.compose_all(text, Loader=yaml.SafeLoader))
    return sorted(_duplicates(roots), key=lambda found: found.line)


def _duplicates(roots: list[yaml.Node]) -> Iterator[DuplicateField]:
    waiting = [(root, FieldPath()) for root in roots]
    seen: set[int] = set()
    while waiting:
        node, path = waiting.pop()
        if id(node) in seen:
            continue  # an alias
        seen.add(id(node))
        if isinstance(node, yaml.SequenceNode):
            waiting += [(item, path.index(position)) for position, item in enumerate(node.value)]
        elif isinstance(node, yaml.MappingNode):
            yield from _repetitions(node, path)
            waiting += [(value, path.child(str(key.value))) for key, value in node.value]


def _repetitions(node: yaml.MappingNode, path: FieldPath) -> Iterator[DuplicateField]:
    known: set[tuple[str, str]] = set()
    for key, _ in node.value:
        name = (key.tag, str(key.value))
        if name in known and key.tag != _MERGE:
            yield DuplicateField(path=path.child(name[1]), line=key.start_mark.line + 1)
        known.add(name)
