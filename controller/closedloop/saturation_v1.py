"""The reference autoscaler's first saturation rule: one replica more or less, by spare KV cache and queue.

Source: `internal/saturation/analyzer.go` of the llm-d workload variant autoscaler, with its default
thresholds.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from statistics import fmean
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.policy import Told
    from controller.closedloop.scenario import Scenario, VariantSetup

KV_THRESHOLD = 0.80
QUEUE_THRESHOLD = 5
KV_TRIGGER = 0.10
QUEUE_TRIGGER = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class Spare:
    """Average spare capacity of replicas that are not saturated: a share of the cache, and queue places."""

    replicas: int
    kv: float
    queue: float

    @property
    def is_short(self) -> bool:
        """Whether one more replica is wanted."""
        return self.kv < KV_TRIGGER or self.queue < QUEUE_TRIGGER

    @property
    def may_lose_one(self) -> bool:
        """Whether enough would be left if the load of one replica were spread over the others."""
        if self.replicas < 2:  # noqa: PLR2004 (the last replica remains)
            return False
        scale = self.replicas / (self.replicas - 1)
        kv = KV_THRESHOLD - (KV_THRESHOLD - self.kv) * scale
        queue = QUEUE_THRESHOLD - (QUEUE_THRESHOLD - self.queue) * scale
        return kv >= KV_TRIGGER and queue >= QUEUE_TRIGGER


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantState:
    """The state of one variant. `seen` has KV usage and queue length of each replica that reports."""

    name: str
    cost: float
    replicas: int
    ready: int
    desired: int
    seen: Sequence[tuple[float, int]]


def spare_of(variants: Sequence[VariantState]) -> Spare:
    """Return the average over all unsaturated replicas of a model; zeros if all are saturated."""
    free = [
        (KV_THRESHOLD - kv, QUEUE_THRESHOLD - queue)
        for variant in variants
        for kv, queue in variant.seen
        if kv < KV_THRESHOLD and queue < QUEUE_THRESHOLD
    ]
    if not free:
        return Spare(replicas=0, kv=0.0, queue=0.0)
    return Spare(replicas=len(free), kv=fmean(kv for kv, _ in free), queue=fmean(q for _, q in free))


def targets(variants: Sequence[VariantState]) -> Mapping[str, int]:
    """Return the replicas of each variant of one model."""
    kept = {
        variant.name: variant.desired if variant.desired not in (0, variant.replicas) else variant.replicas
        for variant in variants
    }
    reporting = [variant for variant in variants if variant.seen]
    in_transition = any(
        variant.desired not in (0, variant.replicas) or len(variant.seen) != variant.replicas
        for variant in variants
    )
    if in_transition or not reporting:
        return kept
    spare = spare_of(reporting)
    if spare.is_short:
        settled = [variant for variant in reporting if variant.ready >= variant.replicas]
        if settled:
            chosen = min(settled, key=lambda variant: (variant.cost, variant.name))
            return kept | {chosen.name: kept[chosen.name] + 1}
    elif spare.may_lose_one:
        several = [variant for variant in reporting if variant.replicas > 1]
        if several:
            chosen = max(several, key=lambda variant: (variant.cost, variant.name))
            return kept | {chosen.name: kept[chosen.name] - 1}
    return kept


@dataclass(kw_only=True)
class SaturationV1Policy:
    """The rule every 60 s, with its replicas published to an HPA."""

    scenario: Scenario
    name: str = "wva-v1"
    interval_seconds: float = 60.0
    told: list[Told] = field(default_factory=list)
    _desired: dict[str, int] = field(default_factory=dict)

    def autoscaler(self, variant: VariantSetup) -> Autoscaler:
        """Return the HPA that reads the number of replicas."""
        return self.scenario.follower(variant)

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the replicas of each variant from the current state of the engines."""
        by_model: dict[str, list[VariantState]] = defaultdict(list)
        for variant in cluster.variants.values():
            pods = cluster.pods_of(variant.name)
            servers = [cluster.server(pod) for pod in pods if pod.is_ready]
            state = VariantState(
                name=variant.name,
                cost=variant.price_per_hour,
                replicas=len(pods),
                ready=len(servers),
                desired=self._desired.get(variant.name, len(pods)),
                seen=[(server.kv_usage, server.waiting) for server in servers],
            )
            by_model[variant.model_id].append(state)
        for states in by_model.values():
            self._desired |= targets(states)
        return {name: float(replicas) for name, replicas in self._desired.items()}
