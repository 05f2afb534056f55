"""The interface of policies, which decide the number of replicas."""

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
    """A decision with its explanation."""

    seconds: float
    variant: str
    replicas: int
    current_replicas: int
    """Replicas at the time of the decision."""

    sentence: str


class Policy(Protocol):
    """Publishes a metric per variant; it may have state, so create a new one for each run."""

    name: str
    told: list[Told]

    @property
    def interval_seconds(self) -> float:
        """Seconds between two decisions. Metrics are published at HPA syncs, so that is the minimum."""

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return the HPA that follows a variant's metric; None if it takes effect directly."""

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the current metrics by variant; a missing one is unavailable."""
