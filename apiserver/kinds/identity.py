"""The identity of namespaced objects, and their order by age."""

from __future__ import annotations

from typing import Final

from apiserver.schema.json import Json

Key = tuple[str, str]
"""Namespace and name."""

METADATA: Final = (
    "namespace",
    "name",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
)
"""Fields of the metadata that say which object it is, and since when."""


def key_of(value: Json) -> Key:
    """Return the namespace and name of an object."""
    return value["metadata"]["namespace"], value["metadata"]["name"]


def seniority(value: Json) -> tuple[str, Key]:
    """Return the sort key by which older objects come first: creation timestamp, then namespace and name."""
    return value["metadata"].get("creationTimestamp") or "", key_of(value)
