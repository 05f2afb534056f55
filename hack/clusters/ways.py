"""Ways to create the new pods: their order and their scheduler."""

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
    """The order in which the scheduler receives the pods of a cluster."""

    ARBITRARY = "arrival order"
    BY_PRIORITY = "arrival order, with a priority by size"
    LARGEST_FIRST = "largest first"
    GATED = "gated, arrival order"


def new_names(planned: Planned) -> list[str]:
    """Return the names of the pods that a plan adds, which are the same in every way."""
    return [f"{planned.cluster.name}-new-{number}" for number in range(sum(planned.added.values()))]


@dataclass(frozen=True, kw_only=True, slots=True)
class Way:
    """A scheduler and an order for the pods that a plan adds."""

    scheduler: str
    order: Order

    def new_pods(self, planned: Planned) -> list[Json]:
        """Return the pods that the plan adds, in the order of creation."""
        shapes = {shape.name: shape for shape in planned.cluster.shapes}
        wanted = [shapes[name] for name, count in sorted(planned.added.items()) for _ in range(count)]
        Random(planned.cluster.seed).shuffle(wanted)  # noqa: S311 (not used for security)
        if self.order is Order.LARGEST_FIRST:
            wanted.sort(key=lambda shape: -shape.accelerators)
        return [self._pod(name, shape) for name, shape in zip(new_names(planned), wanted, strict=True)]

    def _pod(self, name: str, shape: Shape) -> Json:
        by_size = f"stowplan-accelerators-{shape.accelerators}" if self.order is Order.BY_PRIORITY else ""
        return new_pod(
            name, shape, scheduler=self.scheduler, priority_class=by_size, is_gated=self.order is Order.GATED
        )
