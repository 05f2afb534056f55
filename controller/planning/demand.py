"""The demand of each model, shared by its variants, and the capacity that the model requires for it.

Rates are integers in millionths of a request per second: the load from sizing, and the capacity of replicas.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

from controller.planning.load import ModelLoad, Signal, rate_up
from controller.planning.snapshot import PlannedModel, Replica, Snapshot, Variant

Key = tuple[str, str]

LOAD_BAND_PERCENT = (95, 120)
"""Bounds of the capacity for the present load, relative to it."""

_NODES = attrgetter("nodes")
_MAY_GO = attrgetter("may_scale_to_zero")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelDemand:
    """The demand of one model. Rates are integers in millionths of a request per second."""

    load: ModelLoad
    priority: int
    may_scale_to_zero: bool
    variants: tuple[Variant, ...]
    """Sorted by name."""

    lower_rate: int
    """Capacity that must exist."""

    upper_rate: int | None
    """Capacity above this may be removed; None if none may."""

    anticipated_rate: int
    """Capacity of the replicas that exist or are starting."""

    supply_rate: int
    """Capacity of the ready replicas that are not being removed."""

    min_replicas: int = 0
    """Minimum of all variants together, whatever the load."""

    is_awaited: bool = False
    """Whether requests wait in front of the model."""

    @property
    def floor(self) -> int:
        """The minimum number of replicas of all variants together."""
        return max(self.min_replicas, int(self.is_awaited or not self.may_scale_to_zero))

    @property
    def namespace(self) -> str:
        """Namespace of the model's variants."""
        return self.load.namespace

    @property
    def model_id(self) -> str:
        """ID of the model."""
        return self.load.model_id

    @property
    def signal(self) -> Signal:
        """How reliable the load data is."""
        return self.load.signal

    @property
    def is_unsized(self) -> bool:
        """Whether there is a load, and replicas of which it is unknown how much of it they serve.

        They are neither enough nor too few.
        """
        return (
            self.upper_rate != 0
            and all(variant.capacity is None for variant in self.variants)
            and any(variant.current_replicas for variant in self.variants)
        )

    @property
    def required_rate(self) -> int:
        """Required capacity: the existing capacity, clamped to the dead band [lower_rate, upper_rate].

        Capacity that a stabilization window still holds counts as existing. A band around the last decision
        changes decisions a quarter as often, but the number of replicas four times as often, at about the
        same cost (decision benchmark, row conv-x12). Held data only raises the existing capacity. Unknown
        demand, or demand that cannot be compared with the replicas, requires nothing here: every replica is
        kept.
        """
        if self.signal is Signal.UNKNOWN or self.is_unsized:
            return 0
        least = max(self.anticipated_rate, self.lower_rate)
        if self.signal is Signal.HELD or self.upper_rate is None:
            return least
        return min(least, self.upper_rate)

    def load_rate(self, drain_seconds: float) -> int:
        """Capacity for the present load: the existing capacity, clamped to a band around the load.

        Waiting requests are part of the load over the given time. The margin of capacities is not: it comes
        after the load of all models.

        Within the band nothing moves, whatever the load of others does. Without a band, noise of the load
        restarts a share of all replicas in each cycle of a shortage.
        """
        rate = self.load.requests_per_second
        if rate is None:
            return 0
        load = self.load.steady_rate(rate + self.load.backlog_requests / drain_seconds)
        least, most = (load * share // 100 for share in LOAD_BAND_PERCENT)
        return min(self.required_rate, max(least, min(most, self.anticipated_rate)))

    @property
    def keeps_mix(self) -> bool:
        """Whether none of the replicas is exchanged for others: the load grows, and none is superfluous."""
        if not self.load.is_growing or not self.signal.decides or self.upper_rate is None:
            return False
        return self.anticipated_rate - max(map(rate_of, self.variants)) < self.upper_rate

    @property
    def continuity_rate(self) -> int:
        """Ready capacity to keep until replacements are ready: no serving replica is removed before then."""
        return self.supply_rate if self.upper_rate is None else min(self.supply_rate, self.upper_rate)


def staying_replicas(variant: Variant) -> tuple[Replica, ...]:
    """Return the pods that the scale target keeps, in removal order, pods without a node first."""
    ordered = variant.replicas
    if not all(map(_NODES, ordered)):
        ordered = tuple(sorted(ordered, key=lambda replica: bool(replica.nodes)))
    return ordered[max(0, len(ordered) - variant.current_replicas) :]


def allowed_replicas(variant: Variant) -> int:
    """Return the current replicas, capped at `max_replicas`."""
    if variant.max_replicas is None:
        return variant.current_replicas
    return min(variant.current_replicas, variant.max_replicas)


def anticipated_replicas(variant: Variant) -> int:
    """Return the replicas that exist or start; those that wait in vain would be replaced again and again."""
    return max(0, allowed_replicas(variant) - variant.stalled_replicas)


def rate_of(variant: Variant) -> int:
    """Return the capacity of one replica in millionths of a request per second; 0 if it is not counted on."""
    return variant.capacity.rate if variant.capacity and variant.capacity.is_usable else 0


def serving_rate(variant: Variant) -> int:
    """Return the capacity of one running replica, whether or not new replicas would be counted on."""
    return variant.capacity.rate if variant.capacity else 0


def provided_rate(variants: Sequence[Variant], replicas: Sequence[int]) -> int:
    """Return the known capacity of the replicas of a model's variants together."""
    return sum([rate_of(variant) * number for variant, number in zip(variants, replicas, strict=True)])


def model_demands(snapshot: Snapshot) -> tuple[ModelDemand, ...]:
    """Return the demand of each model, sorted by namespace and model."""
    models: dict[Key, list[Variant]] = defaultdict(list)
    for variant in sorted(snapshot.variants, key=attrgetter("namespace", "name")):
        models[variant.namespace, variant.model_id].append(variant)
    known = {(model.namespace, model.model_id): model for model in snapshot.models}
    loads = {(load.namespace, load.model_id): load for load in snapshot.loads}
    return tuple(_model_demand(key, models[key], loads, known.get(key)) for key in sorted(models))


def _model_demand(
    key: Key, variants: Sequence[Variant], loads: Mapping[Key, ModelLoad], model: PlannedModel | None
) -> ModelDemand:
    load = loads.get(key) or ModelLoad(namespace=key[0], model_id=key[1], signal=Signal.UNKNOWN)
    releasable = load.releasable_requests_per_second
    is_in_grace = (
        model is not None and model.idle_seconds is not None and model.idle_seconds < model.grace_seconds
    )
    return ModelDemand(
        load=load,
        priority=min([variant.priority for variant in variants]),
        may_scale_to_zero=all(map(_MAY_GO, variants)) and not is_in_grace,
        variants=tuple(variants),
        lower_rate=rate_up(load.required_requests_per_second),
        upper_rate=None if releasable is None else rate_up(releasable),
        anticipated_rate=provided_rate(variants, [anticipated_replicas(variant) for variant in variants]),
        supply_rate=sum([serving_rate(variant) * ready_replicas(variant) for variant in variants]),
        min_replicas=model.min_replicas if model else 0,
        is_awaited=model is not None and model.is_awaited,
    )


def ready_replicas(variant: Variant) -> int:
    """Return how many of the replicas that stay are ready."""
    return sum([replica.ready for replica in staying_replicas(variant)])
