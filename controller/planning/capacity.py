"""What one replica of each variant can hold, learned from its engines and remembered beyond them.

Order of trust: its own engines now, what they last showed (this process's memory, then the published status),
then an estimate from the model's other variants.
"""

from __future__ import annotations

from collections import defaultdict
from statistics import fmean
from typing import TYPE_CHECKING

from controller.planning.decision import CapacitySource
from controller.planning.history import full_replicas, push, window_key
from controller.planning.saturation import (
    Capacity,
    derived_capacity,
    is_full,
    median_capacity,
    replica_capacity,
    round_down,
)
from controller.planning.state import KnownCapacity, PlanningState

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.settings import Settings
    from controller.planning.snapshot import Replica, ReplicaSample, Variant
    from controller.planning.state import Window, WindowKey

    Key = tuple[str, str]


def usable_sample(replica: Replica, settings: Settings) -> ReplicaSample | None:
    """Return the replica's report unless it is too old to mean anything."""
    sample = replica.sample
    return sample if sample is not None and sample.age_seconds <= settings.held_seconds else None


def learn(
    variants: Sequence[Variant], state: PlanningState, settings: Settings
) -> tuple[Mapping[Key, Capacity], PlanningState]:
    """Return the capacity per replica of each variant for which there is one, and the next memory."""
    full = [*full_replicas(variants, settings)]
    windows = push(variants, full, state, settings)
    stored = {(item.namespace, item.name): item for item in state.capacities}
    known = _known(variants, _now(variants, windows, state, settings), stored)
    next_state = PlanningState(
        windows=tuple([windows[key] for key in sorted(windows)]),
        capacities=tuple([_to_store(key, known[key].tokens, stored) for key in sorted(known)]),
        queued=tuple(sorted([(variant.namespace, replica.name) for variant, replica, _ in full])),
    )
    return _estimated(variants, known, settings) | known, next_state


def _now(
    variants: Sequence[Variant], windows: Mapping[WindowKey, Window], state: PlanningState, settings: Settings
) -> dict[Key, Capacity]:
    """Return what the replicas of each variant show, where any report."""
    queued = set(state.queued)

    def shown(variant: Variant, replica: Replica, sample: ReplicaSample) -> Capacity:
        key = window_key(variant, sample)
        return replica_capacity(
            variant,
            sample,
            window=windows[key].tokens if key and key in windows else (),
            observed=is_full(sample, settings) and (variant.namespace, replica.name) in queued,
            settings=settings,
        )

    found = {}
    for variant in variants:
        reports = [(replica, usable_sample(replica, settings)) for replica in variant.replicas]
        if capacities := [shown(variant, replica, sample) for replica, sample in reports if sample]:
            found[variant.key] = median_capacity(capacities)
    return found


def _known(
    variants: Sequence[Variant], now: Mapping[Key, Capacity], stored: Mapping[Key, KnownCapacity]
) -> dict[Key, Capacity]:
    """Return what each variant's replicas show now, else what they last showed."""
    found = {}
    for variant in variants:
        key = variant.key
        if key in now:
            found[key] = now[key]
        elif tokens := (key in stored and stored[key].tokens) or variant.published_capacity_tokens:
            found[key] = Capacity(tokens=tokens, source=CapacitySource.LAST_KNOWN)
    return found


def _to_store(key: Key, tokens: int, stored: Mapping[Key, KnownCapacity]) -> KnownCapacity:
    """Return what to remember of a variant: the same record where nothing is new."""
    before = stored.get(key)
    if before and before.tokens == tokens:
        return before
    return KnownCapacity(namespace=key[0], name=key[1], tokens=tokens)


def _estimated(
    variants: Sequence[Variant], known: Mapping[Key, Capacity], settings: Settings
) -> dict[Key, Capacity]:
    """Estimate variants that never ran, so that they can be chosen; corrected as soon as one reports."""
    unknown = [variant for variant in variants if variant.key not in known]
    if not unknown:
        return {}
    siblings: dict[Key, list[Variant]] = defaultdict(list)
    for variant in variants:
        siblings[variant.namespace, variant.model_id].append(variant)
    estimates = {
        variant.key: _estimate(
            variant, siblings[variant.namespace, variant.model_id], known, settings=settings
        )
        for variant in unknown
    }
    return {
        key: Capacity(tokens=tokens, source=CapacitySource.ESTIMATED)
        for key, tokens in estimates.items()
        if tokens
    }


def _estimate(
    variant: Variant, siblings: Sequence[Variant], known: Mapping[Key, Capacity], *, settings: Settings
) -> int | None:
    """Return what the batch limits allow, but no more than its share of what the best known sibling holds."""
    running = [sibling for sibling in siblings if sibling.key in known]
    shares = [round_down(known[sibling.key].tokens * _share(variant, sibling)) for sibling in running]
    samples = [
        sample
        for sibling in siblings
        for replica in sibling.replicas
        if (sample := usable_sample(replica, settings))
    ]
    derived = derived_capacity(
        variant,
        avg_input_tokens=mean(samples, "avg_input_tokens"),
        avg_output_tokens=mean(samples, "avg_output_tokens"),
    )
    bounds = [derived or 0, max(shares, default=0)]
    return min((bound for bound in bounds if bound), default=None)


def _share(variant: Variant, sibling: Variant) -> float:
    """Return how much of a sibling's capacity a variant may hope for: all of it on the same hardware.

    Else it is presumed to be worth its price, and with fewer accelerators to have less than its part, for the
    weights take the same; with more it is taken to hold only as much, until it proves better.
    """
    own, theirs = variant.accelerators_per_replica, sibling.accelerators_per_replica
    if (variant.accelerator, own) == (sibling.accelerator, theirs):
        return 1.0
    price = sibling.cost_per_replica and variant.cost_per_replica / sibling.cost_per_replica
    return min(1.0, own / theirs if own and theirs else 1.0, float(price) or 1.0)


def mean(samples: Sequence[ReplicaSample], field: str) -> float | None:
    """Return the mean of a field over all engines that know it; None when none does."""
    values = [value for sample in samples if (value := getattr(sample, field)) is not None]
    return fmean(values) if values else None
