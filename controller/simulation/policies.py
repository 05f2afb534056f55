"""The interface of policies, and two common ones: an HPA on load per replica, and a constant fleet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

from controller.simulation.autoscaler import Autoscaler
from controller.simulation.cluster import VirtualCluster
from controller.simulation.outcome import PolicyDecision
from controller.simulation.scenario import Scenario, VariantSetup


class Policy(Protocol):
    """Publishes a metric per variant; it may have state, so create a new one for each run."""

    name: str
    decisions: list[PolicyDecision]

    @property
    def interval_seconds(self) -> float:
        """Seconds between two decisions. Metrics are published at HPA syncs, so that is the minimum."""

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return the HPA that follows a variant's metric; None if it takes effect directly."""

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the current metrics by variant; a missing one is unavailable."""


def chosen_variants(scenario: Scenario, variant: str = "") -> frozenset[str]:
    """Return the variants that a policy scales: the given one, and the first of each other model and role."""
    given = [item for item in scenario.variants if item.name == variant]
    chosen = {
        (item.model_id, item.profile.role): item.name for item in (*reversed(scenario.variants), *given)
    }
    return frozenset(chosen.values())


@dataclass(kw_only=True)
class LoadPolicy:
    """An HPA per model on the requests of one variant: running and waiting ones, or waiting ones only.

    `per_replica` is its target; other variants have no replicas. Requests that no engine has are not visible
    to it, as in a real cluster.
    """

    scenario: Scenario
    per_replica: float
    scaled: frozenset[str]
    name: str = ""
    counts_running: bool = True
    decisions: list[PolicyDecision] = field(default_factory=list)

    @property
    def interval_seconds(self) -> float:
        """The sync period of HPAs, because they read the load directly."""
        return self.scenario.sync_seconds

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return the HPA of a scaled variant. It keeps one replica, because without any there is no load."""
        if variant.name not in self.scaled:
            return None
        return Autoscaler(
            behaviour=self.scenario.behaviour,
            min_replicas=max(1, variant.min_replicas),
            max_replicas=variant.max_replicas,
            target_average=self.per_replica,
        )

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the load of each scaled variant, and 0 for the others."""
        metrics = dict.fromkeys(cluster.variants, 0.0)
        for pod in cluster.pods.values():
            if pod.is_ready and pod.deleted_seconds is None and pod.variant in self.scaled:
                server = cluster.server(pod)
                metrics[pod.variant] += server.waiting + (server.running if self.counts_running else 0)
        return metrics


@dataclass(kw_only=True)
class ConstantPolicy:
    """A fixed number of replicas of one variant per model, whatever the load; none of the others."""

    replicas: int
    scaled: frozenset[str]
    name: str = ""
    interval_seconds: float = 15.0
    decisions: list[PolicyDecision] = field(default_factory=list)

    def autoscaler(self, variant: VariantSetup) -> Autoscaler | None:
        """Return None: published replicas take effect directly."""
        del variant
        return None

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the fixed numbers."""
        return {name: float(self.replicas * (name in self.scaled)) for name in cluster.variants}
