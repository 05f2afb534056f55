"""Placement in the virtual cluster: nodes with accelerators, and their free amounts."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controller.observe.accelerators import accelerators_in, normalised, product_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from apiserver.schema.json import Json
    from controller.closedloop.scenario import VariantSetup


@dataclass(kw_only=True, slots=True)
class Place:
    """One node, with its free accelerators and its pods."""

    name: str
    accelerator: str
    free: int
    pods: Counter[str] = field(default_factory=Counter)
    """Number of pods of each variant."""

    is_lost: bool = False


class Places:
    """All schedulable nodes, sorted by name."""

    def __init__(self, nodes: Sequence[Json]) -> None:
        self._places = {
            node["metadata"]["name"]: Place(
                name=node["metadata"]["name"],
                accelerator=product_of(node["metadata"].get("labels") or {}),
                free=accelerators_in((node.get("status") or {}).get("allocatable") or {}),
            )
            for node in sorted(nodes, key=lambda node: str(node["metadata"]["name"]))
            if not (node.get("spec") or {}).get("unschedulable")
        }

    def take(self, variant: VariantSetup) -> str | None:
        """Take a place for a replica and return the node, or None if there is none.

        Among nodes with room, the one with the fewest pods of the variant is chosen, because kube-scheduler
        spreads them.
        """
        kind, asked = normalised(variant.accelerator), variant.accelerators_per_replica
        fitting = [
            place
            for place in self._places.values()
            if place.accelerator == kind and place.free >= asked and not place.is_lost
        ]
        if not fitting:
            return None
        chosen = min(fitting, key=lambda place: place.pods[variant.name])
        chosen.free -= asked
        chosen.pods[variant.name] += 1
        return chosen.name

    def is_lost(self, node: str) -> bool:
        """Return whether a node is away."""
        return node in self._places and self._places[node].is_lost

    def lose(self, node: str) -> None:
        """Take a node away, from which all replicas are released. Raises KeyError for an unknown one."""
        self._places[node].is_lost = True

    def restore(self, node: str) -> None:
        """Bring a lost node back."""
        self._places[node].is_lost = False

    def release(self, node: str, variant: VariantSetup) -> None:
        """Release the place of a replica."""
        place = self._places[node]
        place.free += variant.accelerators_per_replica
        place.pods[variant.name] -= 1
