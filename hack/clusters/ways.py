"""Who creates the new pods in which order, for which scheduler."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from apiserver.schema.json import Json
from hack.clusters.objects import Shape, new_pod
from hack.clusters.planned import Planned

PACKED: Final = "stowplan-packed"
DEFAULT: Final = "default-scheduler"


class Order(StrEnum):
    """In which order the scheduler gets to see the pods of a cluster."""

    ARBITRARY = "as they come"
    BY_PRIORITY = "as they come, with a priority by size"
    LARGEST_FIRST = "largest first"
    GATED = "gated, each let in for its planned node"


def new_names(planned: Planned) -> list[str]:
    """Return what the pods that a plan adds are called, in whatever way they are created."""
    return [f"{planned.cluster.name}-new-{number}" for number in range(sum(planned.added.values()))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """One way to have what a plan adds scheduled."""

    scheduler: str
    order: Order

    def new_pods(self, planned: Planned) -> list[Json]:
        """Return what the plan adds, in the order of creation."""
        shapes = {shape.name: shape for shape in planned.cluster.shapes}
        wanted = [shapes[name] for name, count in sorted(planned.added.items()) for _ in range(count)]
        Random(planned.cluster.seed).shuffle(wanted)  # noqa: S311 (nobody's secret)
        if self.order is Order.LARGEST_FIRST:
            wanted.sort(key=lambda shape: -shape.accelerators)
        return [self._pod(name, shape) for name, shape in zip(new_names(planned), wanted, strict=True)]

    def _pod(self, name: str, shape: Shape) -> Json:
        by_size = f"stowplan-accelerators-{shape.accelerators}" if self.order is Order.BY_PRIORITY else ""
        return new_pod(
            name, shape, scheduler=self.scheduler, priority_class=by_size, is_gated=self.order is Order.GATED
        )
