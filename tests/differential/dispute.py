"""A finding that only one of two judges has, with its context."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json, JsonValue
from apiserver.schema.model import SchemaNode
from differential.findings import Finding, Findings, plain

SECOND: Final = "jsonschema"
SERVER: Final = "server"
UPDATE: Final = "server, of an update"


@dataclass(frozen=True, kw_only=True, slots=True)
class Dispute:
    """One finding that one of two judges has and the other one does not have."""

    pair: str
    """The judge that is compared with ours."""

    finding: Finding
    is_ours: bool
    ours: Findings
    theirs: Findings
    text: str
    """The message of the server."""

    rules: Findings
    """Those of our findings that come from rules that the server has as CEL."""

    root: SchemaNode
    value: Json
    """The object with defaults."""

    @property
    def node(self) -> SchemaNode:
        """Return the declaration of the finding's field."""
        return _at(self.root, self.value, self.finding.path)[0]

    @property
    def around(self) -> SchemaNode:
        """Return the declaration of the parent of this field."""
        return _at(self.root, self.value, self.finding.path.rpartition(".")[0])[0]

    @property
    def found(self) -> JsonValue:
        """Return the value of this field; None if it is absent."""
        return _at(self.root, self.value, self.finding.path)[1]

    def elsewhere(self, reason: str) -> bool:
        """Tell whether the other judge has a finding for the same field with the given reason."""
        other = self.theirs if self.is_ours else self.ours
        return Finding(self.finding.path, reason) in other


def _at(node: SchemaNode, value: JsonValue, path: str) -> tuple[SchemaNode, JsonValue]:
    if not path:
        return node, value
    for part, below, item in _parts(node, value):
        if path == part:
            return below, item
        if path.startswith(f"{part}."):
            return _at(below, item, path[len(part) + 1 :])
    return SchemaNode(type="any"), None


def _parts(node: SchemaNode, value: JsonValue) -> list[tuple[str, SchemaNode, JsonValue]]:
    if isinstance(value, list):
        return [(str(rank), node.items or SchemaNode(type="any"), item) for rank, item in enumerate(value)]
    if not isinstance(value, dict):
        return []
    members = {prop.name: prop.node for prop in node.properties}
    names = [*value, *(name for name in members if name not in value)]
    other = node.values or SchemaNode(type="any")
    return [(plain(name), members.get(name, other), value.get(name)) for name in names]
