"""One demand per model, shared by its variants, and the capacity that the model is to have for it.

Demand is counted in tokens of KV cache: what running requests hold, plus the prompts of those that wait. A
full engine caps the first term, so the second alone says how far a burst exceeds what runs; a long queue asks
for as many replicas at once as it needs.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING

from controller.planning.capacity import mean, usable_sample
from controller.planning.decision import Signal
from controller.planning.saturation import round_up, tokens_in_use

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.saturation import Capacity
    from controller.planning.settings import Settings
    from controller.planning.snapshot import ModelRule, Replica, ReplicaSample, Snapshot, Variant

    Key = tuple[str, str]

    _Report = tuple[bool, ReplicaSample | None, int]
    """Of a replica: whether it is ready, what it reports, and what it holds in tokens."""

_NODES = attrgetter("nodes")
_MAY_GO = attrgetter("may_scale_to_zero")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDemand:
    """What one model asks for. All amounts are tokens of KV cache."""

    namespace: str
    model_id: str
    priority: int
    may_scale_to_zero: bool
    variants: tuple[Variant, ...]
    """Sorted by name."""

    signal: Signal
    signal_age_seconds: float | None
    silent_replicas: int
    """Ready replicas without a usable report."""

    tokens: int | None
    """In use and waiting; None when unknown."""

    lower_tokens: int
    """Capacity at which demand reaches the scale-up threshold: there must be at least this much."""

    upper_tokens: int
    """Capacity at which demand reaches the scale-down boundary: what is beyond may go."""

    anticipated_tokens: int
    """Capacity of the replicas that exist or are starting."""

    supply_tokens: int
    """Capacity of the ready replicas that stay."""

    @property
    def required_tokens(self) -> int:
        """Capacity that the model is to have: what it has, moved into the dead band [lower, upper].

        Held data only moves it up; unknown demand requires nothing here, since every replica stays.
        """
        if self.signal is Signal.UNKNOWN:
            return 0
        if self.signal is Signal.HELD:
            return max(self.anticipated_tokens, self.lower_tokens)
        return min(max(self.anticipated_tokens, self.lower_tokens), self.upper_tokens)

    @property
    def continuity_tokens(self) -> int:
        """Ready capacity to keep while replacements start: nothing that serves goes before they do."""
        return min(self.supply_tokens, self.upper_tokens)


def staying_replicas(variant: Variant) -> tuple[Replica, ...]:
    """Return the pods that the scale target still asks for, in removal order, pods without a node first."""
    ordered = variant.replicas
    if not all(map(_NODES, ordered)):
        ordered = tuple(sorted(ordered, key=lambda replica: bool(replica.nodes)))
    return ordered[max(0, len(ordered) - variant.current_replicas) :]


def allowed_replicas(variant: Variant) -> int:
    """Return the current replicas as far as `max_replicas` lets them be."""
    if variant.max_replicas is None:
        return variant.current_replicas
    return min(variant.current_replicas, variant.max_replicas)


def model_demands(
    snapshot: Snapshot, capacities: Mapping[Key, Capacity], settings: Settings
) -> tuple[ModelDemand, ...]:
    """Return the demand of each model, sorted by namespace and model."""
    models: dict[Key, list[Variant]] = defaultdict(list)
    for variant in sorted(snapshot.variants, key=attrgetter("namespace", "name")):
        models[variant.namespace, variant.model_id].append(variant)
    rules = {(rule.namespace, rule.model_id): rule for rule in snapshot.models}
    return tuple(
        _model_demand(models[key], capacities, rules.get(key), settings=settings) for key in sorted(models)
    )


def _model_demand(
    variants: Sequence[Variant],
    capacities: Mapping[Key, Capacity],
    rule: ModelRule | None,
    *,
    settings: Settings,
) -> ModelDemand:
    known = [capacities.get(variant.key) for variant in variants]
    held = [capacity.tokens if capacity else 0 for capacity in known]
    reports = [
        (replica.ready, usable_sample(replica, settings), tokens)
        for variant, tokens in zip(variants, held, strict=True)
        for replica in variant.replicas
    ]
    signal, age, silent, tokens = _asked(reports, rule, settings)
    return ModelDemand(
        namespace=variants[0].namespace,
        model_id=variants[0].model_id,
        priority=min([variant.priority for variant in variants]),
        may_scale_to_zero=all(map(_MAY_GO, variants)) and not _in_grace(rule),
        variants=tuple(variants),
        signal=signal,
        signal_age_seconds=age,
        silent_replicas=silent,
        tokens=None if tokens is None else round_up(tokens),
        lower_tokens=round_up((tokens or 0) / settings.scale_up_threshold),
        upper_tokens=round_up((tokens or 0) / settings.scale_down_boundary),
        anticipated_tokens=sum([each * allowed_replicas(v) for v, each in zip(variants, held, strict=True)]),
        supply_tokens=sum([each * _ready(v) for v, each in zip(variants, held, strict=True) if v.replicas]),
    )


def _ready(variant: Variant) -> int:
    """Return how many of the replicas that stay are ready."""
    return sum([replica.ready for replica in staying_replicas(variant)])


def _in_grace(rule: ModelRule | None) -> bool:
    """Tell whether the last request is too short a while ago for the last replica to go."""
    return rule is not None and rule.idle_seconds is not None and rule.idle_seconds < rule.grace_seconds


def _asked(
    reports: Sequence[_Report], rule: ModelRule | None, settings: Settings
) -> tuple[Signal, float | None, int, float | None]:
    """Return the signal's grade, the age of its oldest sample, the number of silent replicas, the demand."""
    if rule and rule.demand_tokens is not None:
        return Signal.FRESH, None, 0, rule.demand_tokens
    samples = [sample for _, sample, _ in reports if sample]
    some_silent = len(samples) < len(reports)
    silent = sum([ready and sample is None for ready, sample, _ in reports]) if some_silent else 0
    if not samples:
        return Signal.UNKNOWN, None, silent, None
    mean_input = mean(samples, "avg_input_tokens")
    age = max([sample.age_seconds for sample in samples])
    queueing = [sample for sample in samples if sample.waiting]
    unmeasured = any(_input_tokens(sample, mean_input) is None for sample in queueing)
    old = silent or unmeasured or age > settings.fresh_seconds
    return Signal.HELD if old else Signal.FRESH, age, silent, _tokens(reports, mean_input)


def _tokens(reports: Sequence[_Report], mean_input: float | None) -> float:
    """Return the demand; a ready replica that is silent is taken to be as loaded as those that report."""
    known = reporting = silent = 0.0
    for ready, sample, capacity in reports:
        if sample is not None:
            known += tokens_in_use(sample) + sample.waiting * (_input_tokens(sample, mean_input) or 0.0)
            reporting += capacity
        elif ready:
            silent += capacity
    return known + (known / reporting * silent if reporting else 0.0)


def _input_tokens(sample: ReplicaSample, mean_input: float | None) -> float | None:
    """Return a waiting prompt's length: the engine's mean, the model's, else what a running one holds."""
    if sample.avg_input_tokens is not None:
        return sample.avg_input_tokens
    if mean_input is None and sample.running and sample.kv_usage:
        return tokens_in_use(sample) / sample.running
    return mean_input
