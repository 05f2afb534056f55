"""Selections of objects of a resource, and the form in which they are read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.cluster.transport import JSON_TYPE

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """A subset of a resource; all its objects unless a namespace or selector is set."""

    resource: Resource
    namespace: str | None = None
    label_selector: str | None = None
    field_selector: str | None = None
    metadata_only: bool = False
    """Whether to request `PartialObjectMetadata`: `metadata` without spec and status."""

    @property
    def path(self) -> str:
        """The path of the collection."""
        return self.resource.path(self.namespace)

    def query(self) -> dict[str, str]:
        """Return the selectors as query parameters."""
        selectors = {"labelSelector": self.label_selector, "fieldSelector": self.field_selector}
        return {name: value for name, value in selectors.items() if value}

    def accept(self, *, as_list: bool) -> str:
        """Return the `Accept` header; plain JSON is the fallback for servers without partial metadata."""
        if not self.metadata_only:
            return JSON_TYPE
        kind = "PartialObjectMetadataList" if as_list else "PartialObjectMetadata"
        return f"{JSON_TYPE};as={kind};g=meta.k8s.io;v=v1,{JSON_TYPE}"
