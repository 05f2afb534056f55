"""The types of an object's metadata, as far as rules, references and conversion read it.

The API server's decoder checks them before any webhook is called, but a file on disk has no such check. Other
validation of metadata is in `metadata`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from apiserver.schema.declaration import UNSET, Maybe, declaration
from apiserver.schema.model import Node, Property, node_of


@declaration()
class OwnerReference:
    """An object that owns this one."""

    api_version: Maybe[str] = UNSET
    kind: Maybe[str] = UNSET
    name: Maybe[str] = UNSET
    uid: Maybe[str] = UNSET
    controller: Maybe[bool] = UNSET


@declaration()
class ObjectMeta:
    """The metadata of an object."""

    name: Maybe[str] = UNSET
    generate_name: Maybe[str] = UNSET
    namespace: Maybe[str] = UNSET
    labels: Maybe[dict[str, str]] = UNSET
    annotations: Maybe[dict[str, str]] = UNSET
    owner_references: Maybe[tuple[OwnerReference, ...]] = UNSET


@declaration()
class _Object:
    metadata: Maybe[ObjectMeta] = UNSET


_METADATA: Final[tuple[Property, ...]] = node_of(_Object).properties


def with_metadata(node: Node) -> Node:
    """Return the root node of a kind with its metadata declared; any other node unchanged."""
    if node.property("spec") is None or node.property("metadata") is not None:
        return node
    return replace(node, properties=(*_METADATA, *node.properties))
