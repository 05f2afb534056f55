"""The interface of policies, and two common ones: an HPA on load per replica, and a constant fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
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


def scaled_variants(scenario: Scenario, named: Sequence[str] = ()) -> frozenset[str]:
    """Return the variants that a policy scales: the named ones, and all of each other model and role."""
    given = {(item.model_id, item.profile.role) for item in scenario.variants if item.name in named}
    return frozenset(
        item.name
        for item in scenario.variants
        if item.name in named or (item.model_id, item.profile.role) not in given
    )


def chosen_variants(scenario: Scenario, named: Sequence[str] = ()) -> frozenset[str]:
    """Return one variant of each model and role: the named one, or the first."""
    given = [item for item in scenario.variants if item.name in named]
    chosen = {
        (item.model_id, item.profile.role): item.name for item in (*reversed(scenario.variants), *given)
    }
    return frozenset(chosen.values())


@dataclass(kw_only=True)
class LoadPolicy:
    """An HPA for each of some variants, on its running and waiting requests, or on the waiting ones only.

    `per_replica` is its target; other variants have their least replicas. Requests that no engine has are not
    visible to it, as in a real cluster.
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
        """Return the load of each scaled variant, and the least replicas of the others."""
        metrics = {
            name: 0.0 if name in self.scaled else float(item.min_replicas)
            for name, item in cluster.variants.items()
        }
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
