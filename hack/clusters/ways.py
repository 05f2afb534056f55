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
        return [self._pod(number, shape) for number, shape in enumerate(wanted)]

    def _pod(self, number: int, shape: Shape) -> Json:
        by_size = f"stowplan-accelerators-{shape.accelerators}" if self.order is Order.BY_PRIORITY else ""
        name = f"{shape.cluster}-new-{number}"
        return new_pod(
            name, shape, scheduler=self.scheduler, priority_class=by_size, is_gated=self.order is Order.GATED
        )
