"""Count further extended resources as accelerators, and read their type from further node labels.

Nodes and pods are passed on with the pseudo-fields that also stand for devices of ResourceSlices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import (
    CLAIMED,
    DEVICES,
    PRODUCT,
    RESOURCE_NAMES,
    accelerators_of,
    whole,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FurtherAccelerators:
    """Names of resources and of node labels that a user declared."""

    resources: tuple[str, ...] = ()
    node_labels: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All extended resources that count, including those that always do."""
        return (*RESOURCE_NAMES, *self.resources)

    def node(self, node: Json) -> Json:
        """Return a node whose further accelerators and their type are known to planning."""
        metadata, status = node["metadata"], node.get("status") or {}
        labels = metadata.get("labels") or {}
        if product := next((labels[name] for name in self.node_labels if labels.get(name)), ""):
            metadata = metadata | {"labels": {PRODUCT: product} | labels}
        counted = {
            name: quantities | {DEVICES: str(count)}
            for name in ("allocatable", "capacity")
            if (quantities := status.get(name)) and (count := self._count(quantities))
        }
        if not counted:
            return node if metadata is node["metadata"] else node | {"metadata": metadata}
        return node | {"metadata": metadata, "status": status | counted}

    def spec(self, spec: Json) -> Json:
        """Return the spec of a pod or template with its further accelerators."""
        count = accelerators_of(spec, self.resources) if self.resources else 0
        return spec | {CLAIMED: int(spec.get(CLAIMED) or 0) + count} if count else spec

    def _count(self, quantities: Json) -> int:
        return sum(whole(quantities[name]) for name in self.resources if name in quantities)


NOTHING_FURTHER: Final = FurtherAccelerators()
"""Only the resources and labels that planning knows."""


def resource_problems(resources: Sequence[str]) -> list[str]:
    """Return one problem for each name that is no extended resource, or that would count twice."""
    return [
        f"accelerators.resources[{position}]: {name!r} {why}"
        for position, name in enumerate(resources)
        if (why := _wrong(name, resources[:position]))
    ]


def _wrong(name: str, earlier: Sequence[str]) -> str:
    if name in RESOURCE_NAMES:
        return "always counts as an accelerator"
    if name in earlier:
        return "is there twice"
    return "" if all(name.partition("/")) else "must be DOMAIN/NAME"
