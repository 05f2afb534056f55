"""The two saturation rules of the reference autoscaler, with its default thresholds.

v1 adds or removes one replica by the spare KV cache and queue of the others. Source:
`internal/saturation/analyzer.go` of the llm-d workload variant autoscaler.

v2 compares the tokens in flight with the capacity of replicas. Source: `analyzers/saturation_v2`,
`pipeline/cost_aware_optimizer.go` and `pipeline/enforcer.go` in `internal/engines` of the same project.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import Final

from controller.simulation.autoscaler import SimulatedAutoscaler
from controller.simulation.batch import Histogram
from controller.simulation.cluster import VirtualCluster
from controller.simulation.outcome import PolicyDecision
from controller.simulation.scenario import Scenario, VariantSetup
from controller.simulation.server import Server

KV_THRESHOLD = 0.80
QUEUE_THRESHOLD = 5
KV_TRIGGER = 0.10
QUEUE_TRIGGER = 3
SCALE_UP_THRESHOLD = 0.85
SCALE_DOWN_BOUNDARY = 0.70
HISTORY_LENGTH = 10
OUTPUT_TOKENS = (100, 500)
"""Bounds of the classes of output lengths by which full replicas are remembered."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SpareCapacity:
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
class VariantSaturation:
    """The state of one variant. `seen` has KV usage and queue length of each replica that reports."""

    name: str
    cost: float
    replicas: int
    desired: int
    seen: Sequence[tuple[float, int]]


def spare_of(variants: Sequence[VariantSaturation]) -> SpareCapacity:
    """Return the average over all unsaturated replicas of a model; zeros if all are saturated."""
    free = [
        (KV_THRESHOLD - kv, QUEUE_THRESHOLD - queue)
        for variant in variants
        for kv, queue in variant.seen
        if kv < KV_THRESHOLD and queue < QUEUE_THRESHOLD
    ]
    if not free:
        return SpareCapacity(replicas=0, kv=0.0, queue=0.0)
    return SpareCapacity(replicas=len(free), kv=fmean(kv for kv, _ in free), queue=fmean(q for _, q in free))


def targets(variants: Sequence[VariantSaturation]) -> Mapping[str, int]:
    """Return the replicas of each variant of one model."""
    current = {variant.name: variant.desired or variant.replicas for variant in variants}
    reporting = [variant for variant in variants if variant.seen]
    in_transition = any(
        variant.desired not in (0, variant.replicas) or len(variant.seen) != variant.replicas
        for variant in variants
    )
    if in_transition or not reporting:
        return current
    spare = spare_of(reporting)
    if spare.is_short:
        chosen = min(reporting, key=lambda variant: (variant.cost, variant.name))
        return current | {chosen.name: current[chosen.name] + 1}
    several = [variant for variant in reporting if variant.replicas > 1]
    if spare.may_lose_one and several:
        chosen = max(several, key=lambda variant: (variant.cost, variant.name))
        return current | {chosen.name: current[chosen.name] - 1}
    return current


@dataclass(kw_only=True)
class SaturationV1Policy:
    """The rule every 60 s, with its replicas published to an HPA."""

    scenario: Scenario
    name: str = "wva-v1"
    interval_seconds: float = 60.0
    decisions: list[PolicyDecision] = field(default_factory=list)
    _desired: dict[str, int] = field(default_factory=dict)

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler:
        """Return the HPA that reads the number of replicas."""
        return self.scenario.follower(variant)

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the replicas of each variant from the current state of the engines."""
        by_model: dict[str, list[VariantSaturation]] = defaultdict(list)
        for variant in cluster.variants.values():
            pods = cluster.pods_of(variant.name)
            servers = [cluster.server(pod) for pod in pods if pod.is_ready]
            state = VariantSaturation(
                name=variant.name,
                cost=variant.price_per_hour,
                replicas=len(pods),
                desired=self._desired.get(variant.name, len(pods)),
                seen=[(server.kv_usage, server.waiting) for server in servers],
            )
            by_model[variant.model_id].append(state)
        for states in by_model.values():
            self._desired |= targets(states)
        return {name: float(replicas) for name, replicas in self._desired.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReplicaTokens:
    """One replica: tokens of its cache, tokens in use, requests in its queue, and recent mean lengths."""

    kv_tokens: int
    in_use: float
    queue: int
    input_tokens: float
    output_tokens: float

    @property
    def demand(self) -> float:
        """Tokens in use plus waiting tokens."""
        return self.in_use + self.queue * self.input_tokens


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantTokens:
    """One variant: cost and capacity of a replica, the number of replicas, and how many are not ready."""

    name: str
    cost: float
    capacity: float
    current: int
    pending: int = 0
    min_replicas: int = 0


def derived_tokens(*, batched_tokens: int, sequences: int, inputs: float, outputs: float) -> float:
    """Return the tokens of the largest batch for requests of these lengths; 0 if unknown."""
    if inputs + outputs <= 0:
        return 0.0
    requests = min(batched_tokens * outputs / (inputs + outputs), sequences)
    return requests * (inputs + outputs / 2)


class CapacityHistory:
    """Recent tokens of full replicas, by model, accelerator and output length."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, int], deque[float]] = {}

    def capacity(self, replica: ReplicaTokens, variant: VariantSetup) -> float:
        """Return the capacity of a replica: its share of memory, or what computing allows if that is less."""
        memory = replica.kv_tokens * KV_THRESHOLD
        key = (variant.model_id, variant.accelerator, bisect_right(OUTPUT_TOKENS, replica.output_tokens))
        if replica.queue >= QUEUE_THRESHOLD and replica.in_use > 0:
            self._seen.setdefault(key, deque(maxlen=HISTORY_LENGTH)).append(replica.in_use)
            return min(memory, replica.in_use)
        if seen := self._seen.get(key):
            return min(memory, fmean(seen))
        derived = derived_tokens(
            batched_tokens=variant.profile.max_num_batched_tokens,
            sequences=variant.profile.max_num_seqs,
            inputs=replica.input_tokens,
            outputs=replica.output_tokens,
        )
        return min(memory, derived) if derived else memory


def required_and_spare(demand: float, variants: Sequence[VariantTokens]) -> tuple[float, float]:
    """Return the missing and the spare tokens of capacity."""
    anticipated = sum(item.current * item.capacity for item in variants)
    supply = sum((item.current - item.pending) * item.capacity for item in variants)
    spare = max(0.0, supply - demand / SCALE_DOWN_BOUNDARY)
    return max(0.0, demand / SCALE_UP_THRESHOLD - anticipated), spare


def optimize(required: float, spare: float, variants: Sequence[VariantTokens]) -> Mapping[str, int]:
    """Return the replicas of each variant: more of the cheapest per token, or fewer of the most expensive."""
    replicas = {item.name: item.current for item in variants}
    if required > 0:
        able = [item for item in variants if item.capacity > 0]
        if able:
            best = min(able, key=lambda item: (item.cost / item.capacity, item.name))
            replicas[best.name] += math.ceil(required / best.capacity)
        return replicas
    cheapest = min(variants, key=lambda item: (item.cost, item.name)).name if variants else ""
    for item in sorted(variants, key=lambda item: (-item.cost, item.name)):
        if item.capacity <= 0:
            continue
        others = sum(count for name, count in replicas.items() if name != item.name)
        least = max(item.min_replicas, 1 if item.name == cheapest and not others else 0)
        removed = max(0, min(int(spare // item.capacity), item.current - least))
        replicas[item.name] -= removed
        spare -= removed * item.capacity
    return replicas


def kept_alive(replicas: Mapping[str, int], variants: Sequence[VariantTokens]) -> Mapping[str, int]:
    """Return the replicas, or one of the cheapest variant if there are none: scale to zero is disabled."""
    if any(replicas.values()) or not variants:
        return replicas
    return {**replicas, min(variants, key=lambda item: (item.cost, item.name)).name: 1}


@dataclass(kw_only=True)
class SaturationV2Policy:
    """The rule every 30 s, with its replicas published to an HPA."""

    scenario: Scenario
    name: str = "wva-v2"
    interval_seconds: float = 30.0
    decisions: list[PolicyDecision] = field(default_factory=list)
    _history: CapacityHistory = field(default_factory=CapacityHistory)
    _live: dict[str, float] = field(default_factory=dict)
    """Last observed capacity of a replica, by variant."""

    def autoscaler(self, variant: VariantSetup) -> SimulatedAutoscaler:
        """Return the HPA that reads the number of replicas."""
        return self.scenario.follower(variant)

    async def publish(self, cluster: VirtualCluster) -> Mapping[str, float]:
        """Return the replicas of each variant from the current state of the engines."""
        published: dict[str, float] = {}
        for model in self.scenario.models:
            variants, demand = [], 0.0
            for variant in self.scenario.variants_of(model.model_id):
                state, in_flight = self._variant(variant, cluster)
                variants.append(state)
                demand += in_flight
            replicas = kept_alive(optimize(*required_and_spare(demand, variants), variants), variants)
            published |= {name: float(count) for name, count in replicas.items()}
        return published

    def _variant(self, variant: VariantSetup, cluster: VirtualCluster) -> tuple[VariantTokens, float]:
        pods = cluster.pods_of(variant.name)
        seen = [_tokens(cluster.server(pod)) for pod in pods if pod.is_ready]
        if seen:
            self._live[variant.name] = median([self._history.capacity(item, variant) for item in seen])
        unseen = variant.profile.kv_tokens * KV_THRESHOLD
        state = VariantTokens(
            name=variant.name,
            cost=variant.price_per_hour,
            capacity=self._live.get(variant.name, unseen),
            current=len(pods),
            pending=len(pods) - len(seen),
            min_replicas=variant.min_replicas,
        )
        return state, sum(item.demand for item in seen)


def _tokens(server: Server) -> ReplicaTokens:
    kv_tokens = server.profile.kv_tokens * len(server.ranks)
    return ReplicaTokens(
        kv_tokens=kv_tokens,
        in_use=server.kv_usage * kv_tokens,
        queue=server.waiting,
        input_tokens=_mean([engine.measures.request_prompt_tokens for engine in server.ranks]),
        output_tokens=_mean([engine.measures.request_generation_tokens for engine in server.ranks]),
    )


def _mean(histograms: Sequence[Histogram]) -> float:
    count = sum(item.count for item in histograms)
    return sum(item.total for item in histograms) / count if count else 0.0


RULES: Final = {"wva-v1": SaturationV1Policy, "wva-v2": SaturationV2Policy}
"""The policy of each rule, by its name in tables."""
