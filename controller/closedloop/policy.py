"""Who says how many replicas there are to be."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.scenario import VariantSetup


@dataclass(frozen=True, kw_only=True, slots=True)
class Told:
    """A decision that was told in words."""

    seconds: float
    variant: str
    replicas: int
    current_replicas: int
    """Those that there were when it was taken."""

    sentence: str


class Policy(Protocol):
    """Publishes a metric per variant; made anew for each run, since it may remember."""

    name: str
    told: list[Told]

    @property
    def interval_seconds(self) -> float:
        """Time between two metrics. They are published when HPAs look, so less than that is as much."""

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return who follows the metric of a variant; None: what is published is done at once."""

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the metrics as they are now, by variant; one that is left out is not available."""
