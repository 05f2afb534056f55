"""Places of the pages' types in our declarations: a type may occur in several fields and versions."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from apiserver.kinds.registry import find_kind
from apiserver.schema.json import Json
from apiserver.schema.kind import Kind, Version
from apiserver.schema.model import SchemaNode, node_of
from apiserver.schema.structural import crd_manifest
from seeds.rows import Document, SeedType, documents

ROOT_FIELDS = ("apiVersion", "kind", "metadata")
"""Fields of every root object, which the API server itself declares and validates."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """One occurrence of a type: its generated schema, and the nodes from the root down to it."""

    kind: Kind
    version: Version
    path: str
    schema: Json
    nodes: tuple[SchemaNode, ...]

    def child(self, name: str) -> Place | None:
        """Return the place of a field, or None if it is not declared."""
        schema = self.schema.get("properties", {}).get(name)
        node = self.nodes[-1].property(name)
        if schema is None or node is None:
            return None
        return self._below(f"{self.path}.{name}".strip("."), schema, node.node)

    @property
    def element(self) -> Place:
        """Return the place of the items of a list or of the values of a map, else this one."""
        node = self.nodes[-1]
        if node.items is not None:
            return self._below(f"{self.path}[]", self.schema["items"], node.items)
        if node.values is not None:
            return self._below(f"{self.path}{{}}", self.schema["additionalProperties"], node.values)
        return self

    @property
    def rules(self) -> dict[str, bool]:
        """The sentences of all rules on it, on its items or above it, each with whether it is in CEL."""
        nodes = [*self.nodes, self.element.nodes[-1]]
        return {rule.sentence: bool(rule.cel) for node in nodes for rule in node.rules}

    def _below(self, path: str, schema: Json, node: SchemaNode) -> Place:
        return Place(
            kind=self.kind, version=self.version, path=path, schema=schema, nodes=(*self.nodes, node)
        )


def places(document_name: str) -> Mapping[str, list[Place]]:
    """Return every declared place of every type of a page."""
    return {name: group for (page, name), group in _all_places().items() if page == document_name}


@functools.cache
def _all_places() -> Mapping[tuple[str, str], list[Place]]:
    by_type: dict[tuple[str, str], list[Place]] = {}
    for document in documents().values():
        for item in document.types.values():
            if item.is_root and not item.is_list:
                for place in _roots(document, item):
                    _descend(document, item, place, by_type)
    return by_type


def _roots(document: Document, item: SeedType) -> Iterator[Place]:
    kind = find_kind(document.group, item.name)
    for version in kind.versions if kind else ():
        if kind and version.name in document.versions:
            (entry,) = (v for v in crd_manifest(kind)["spec"]["versions"] if v["name"] == version.name)
            schema = entry["schema"]["openAPIV3Schema"]
            node = node_of(version.declaration)
            yield Place(kind=kind, version=version, path="", schema=schema, nodes=(node,))


def _descend(
    document: Document, item: SeedType, place: Place, by_type: dict[tuple[str, str], list[Place]]
) -> None:
    by_type.setdefault((document.name, item.name), []).append(place)
    for name, row in item.rows.items():
        below, nested = place.child(name), document.find(row.element)
        if below is not None and nested is not None and not nested[1].is_text:
            _descend(*nested, below.element if row.shape else below, by_type)
