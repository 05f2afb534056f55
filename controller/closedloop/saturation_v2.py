"""The reference autoscaler's second saturation rule: tokens in flight against the capacity of replicas.

Source: `internal/engines/analyzers/saturation_v2` and `internal/engines/pipeline/cost_aware_optimizer.go` of
the llm-d workload variant autoscaler, with its default thresholds.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from statistics import fmean, median
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.closedloop.autoscaler import Autoscaler
    from controller.closedloop.cluster import VirtualCluster
    from controller.closedloop.policy import Told
    from controller.closedloop.scenario import Scenario, VariantSetup
    from controller.simulation.measures import Histogram
    from controller.simulation.server import Server

KV_THRESHOLD = 0.80
QUEUE_THRESHOLD = 5
SCALE_UP_THRESHOLD = 0.85
SCALE_DOWN_BOUNDARY = 0.70
HISTORY_LENGTH = 10
SHORT_OUTPUT_TOKENS = 100
LONG_OUTPUT_TOKENS = 500

Bucket = Literal["short", "medium", "long"]
_HistoryKey = tuple[str, str, Bucket]


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


def output_bucket(output_tokens: float) -> Bucket:
    """Return the class of output lengths by which full replicas are remembered."""
    if output_tokens < SHORT_OUTPUT_TOKENS:
        return "short"
    return "medium" if output_tokens < LONG_OUTPUT_TOKENS else "long"


def derived_tokens(*, batched_tokens: int, sequences: int, inputs: float, outputs: float) -> float:
    """Return the tokens of the largest batch for requests of these lengths; 0 if unknown."""
    if inputs + outputs <= 0:
        return 0.0
    requests = min(batched_tokens * outputs / (inputs + outputs), sequences)
    return requests * (inputs + outputs / 2)


class CapacityHistory:
    """Recent tokens of full replicas, by model, accelerator and output length."""

    def __init__(self) -> None:
        self._seen: dict[_HistoryKey, deque[float]] = {}

    def capacity(self, replica: ReplicaTokens, variant: VariantSetup) -> float:
        """Return the capacity of a replica: its share of memory, or what computing allows if that is less."""
        memory = replica.kv_tokens * KV_THRESHOLD
        key = (variant.model_id, variant.accelerator, output_bucket(replica.output_tokens))
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
    return max(0.0, demand / SCALE_UP_THRESHOLD - anticipated), max(
        0.0, supply - demand / SCALE_DOWN_BOUNDARY
    )


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
    """Return the replicas, or one of the cheapest variant if there are none: scale to zero is disabled.

    Source: `internal/engines/pipeline/enforcer.go` of the same project.
    """
    if any(replicas.values()) or not variants:
        return replicas
    return {**replicas, min(variants, key=lambda item: (item.cost, item.name)).name: 1}


@dataclass(kw_only=True)
class SaturationV2Policy:
    """The rule every 30 s, with its replicas published to an HPA."""

    scenario: Scenario
    name: str = "wva-v2"
    interval_seconds: float = 30.0
    told: list[Told] = field(default_factory=list)
    _history: CapacityHistory = field(default_factory=CapacityHistory)
    _live: dict[str, float] = field(default_factory=dict)
    """Last observed capacity of a replica, by variant."""

    def autoscaler(self, variant: VariantSetup) -> Autoscaler:
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
