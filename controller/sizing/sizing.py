"""The entry point of sizing: adds loads and capacities to a snapshot, once per cycle.

The order within a model follows from what needs what: arrivals and lengths by the engines' counters; the step
times of each variant; from both, the capacity of a replica within the targets; and last the load, which is
limited by capacities while these are known from few samples. What engines attained is judged by the
utilization of the last cycle: for what was required then the present replicas exist. Everything that is
carried on is in `SizingMemory`.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from apiserver.kinds.identity import Key
from controller.planning.load import Capacity, LimitingTarget, ModelLoad, Signal
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import percent
from controller.sizing.attainment import (
    NO_REQUESTS,
    Attainment,
    TargetAttainment,
    record,
    service_level,
    within_the_hour,
)
from controller.sizing.capacity import SizedCapacity
from controller.sizing.demand import ModelObservation, joint_load, load_of, observe_model
from controller.sizing.lengths import Lengths
from controller.sizing.memory import ModelMemory, SizingMemory
from controller.sizing.performance import (
    Performance,
    capacity_of,
    catalog_capacity,
    estimated_capacity,
    performance,
)
from controller.sizing.records import LearnedProfile, Reports, SizingSettings, VariantFacts

_NO_FACTS = VariantFacts()
_NEW_MODEL = ModelMemory()

_QUEUE_SECONDS: Final = 60.0
"""Time in which waiting requests count as load of the ready replicas. Requests that waited miss their targets
because of an earlier load, and must not make the present utilization look too high for them.
"""

_MOST_GROWTH: Final = 2.0
"""Factor on the capacity of the ready replicas by which a model grows while step times are known from few
samples.
"""

_LITTLE: Final = 0.1
"""Share of its throughput that a target may leave to a replica without a message."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedVariant:
    """What sizing tells about one variant, in addition to its capacity."""

    learned: LearnedProfile | None = None
    """Step times to publish; None if none were ever learned."""

    problems: tuple[str, ...] = ()
    """Messages about its profile that its performance contradicts."""

    hard_targets: tuple[str, ...] = ()
    """Messages about latency targets that it cannot meet, or only at a low throughput."""

    service_level: TargetAttainment | None = None
    """What the engines of its model attained; None without targets or requests."""


NOTHING_TOLD: Final = SizedVariant()
"""What sizing tells about a variant that it does not know."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizingResult:
    """The result of a cycle."""

    snapshot: Snapshot
    """The snapshot with the load of each model, and the capacity of each variant where known."""

    memory: SizingMemory
    variants: Mapping[Key, SizedVariant]


def size_models(
    snapshot: Snapshot,
    facts: Mapping[Key, VariantFacts],
    reports: Reports,
    memory: SizingMemory,
    settings: SizingSettings,
) -> SizingResult:
    """Return the snapshot with loads and capacities, and the next memory.

    A load that the snapshot already has is kept, because a user stated it. The current time is the
    snapshot's.
    """
    stated = {(load.namespace, load.model_id): load for load in snapshot.loads}
    own_reports = _as_computed(snapshot.variants, facts, reports)
    cycle = _Cycle(snapshot.taken_seconds, facts, own_reports, memory, settings)
    models = _with_loads_of_pairs(
        {
            key: _sized_model(cycle, key, own, stated.get(key))
            for key, own in _by_model(snapshot.variants).items()
        },
        stated,
    )
    variants = {variant.key: variant for model in models.values() for variant in model.variants}
    return SizingResult(
        snapshot=replace(
            snapshot,
            variants=tuple([variants[variant.key] for variant in snapshot.variants]),
            loads=tuple([model.load for model in models.values()]),
        ),
        memory=SizingMemory(
            models={key: model.memory for key, model in models.items()},
            variants={
                key: own.memory for model in models.values() for key, own in model.performances.items()
            },
        ),
        variants={
            key: SizedVariant(
                learned=own.learned,
                problems=own.problems,
                hard_targets=_hard_targets(variants[key].capacity),
                service_level=service_level(model.attainment, facts.get(key, _NO_FACTS).targets),
            )
            for model in models.values()
            for key, own in model.performances.items()
        },
    )


def _as_computed(variants: Sequence[Variant], facts: Mapping[Key, VariantFacts], reports: Reports) -> Reports:
    """Return the reports without the prompts of engines that get the KV cache of their prompts from others.

    Not all releases of engines count which prompt tokens they compute.
    """
    changed = {
        key: replace(
            report,
            interval=replace(
                report.interval,
                examined_prompt_tokens=report.interval.prompt_tokens,
                computed_prompt_tokens=0.0,
            ),
        )
        for variant in variants
        if not facts.get(variant.key, _NO_FACTS).computes_prompts
        for key in ((variant.namespace, pod.name) for pod in variant.replicas)
        if (report := reports.get(key)) is not None and report.interval is not None
    }
    return {**reports, **changed} if changed else reports


def _with_loads_of_pairs(
    models: Mapping[Key, _SizedModel], stated: Collection[Key]
) -> Mapping[Key, _SizedModel]:
    """Return the models with the load of each role, where pods of two roles serve the same requests.

    Requests reach the pods that generate answers only after those that compute prompts. If the latter are
    too few, the former must not be sized for what gets through.
    """
    pairs: dict[Key, list[Key]] = defaultdict(list)
    for key, model in models.items():
        pair = model.variants[0].pair
        if pair and key not in stated and model.load.signal is not Signal.UNKNOWN:
            pairs[key[0], pair].append(key)
    shared = {
        key: replace(models[key], load=joint_load(models[key].load, [models[other].load for other in keys]))
        for keys in pairs.values()
        for key in keys
    }
    return {**models, **shared}


@dataclass(frozen=True, slots=True)
class _Cycle:
    """Inputs of all models."""

    now_seconds: float
    facts: Mapping[Key, VariantFacts]
    reports: Reports
    memory: SizingMemory
    settings: SizingSettings


@dataclass(frozen=True, kw_only=True, slots=True)
class _SizedModel:
    """The result for one model."""

    variants: Sequence[Variant]
    load: ModelLoad
    memory: ModelMemory
    performances: Mapping[Key, Performance]

    @property
    def attainment(self) -> Attainment:
        """What its engines attained within the last hour."""
        return within_the_hour(self.memory.attained)


def _sized_model(cycle: _Cycle, key: Key, own: Sequence[Variant], stated: ModelLoad | None) -> _SizedModel:
    before = cycle.memory.models.get(key, _NEW_MODEL)
    seen = observe_model(own, cycle.reports, before, now_seconds=cycle.now_seconds, settings=cycle.settings)
    lengths = _stated_lengths(stated) or seen.memory.lengths
    if lengths is not None and not cycle.facts.get(own[0].key, _NO_FACTS).computes_prompts:
        # The least number, and not 0: times are divided by it.
        lengths = replace(lengths, computed=1.0)
    utilization = _utilization(own, before, seen)
    shown = {
        variant.key: _performance(cycle, variant, lengths=seen.memory.lengths, utilization=utilization)
        for variant in own
    }
    equipped, sizes = _with_capacities(own, shown, cycle.facts, lengths, cycle.settings)
    load, after = load_of(key, seen, equipped, cycle.settings, most_required=_most_required(equipped, shown))
    load = replace(load, load_share=_load_share(equipped, sizes))
    attained = [item for performance in shown.values() for item in performance.attained]
    memory = replace(
        after,
        attained=record(after.attained, [*attained, _given_up(after, cycle)], cycle.now_seconds),
        waiting=seen.waiting,
        full_rates={name: size.full_rate for name, size in sizes.items()},
    )
    for name, size in sizes.items():
        # The next cycle weighs what engines attained by the distance from this utilization.
        shown[name] = replace(shown[name], memory=replace(shown[name].memory, utilization=size.utilization))
    return _SizedModel(variants=equipped, load=stated or load, memory=memory, performances=shown)


def _most_required(variants: Sequence[Variant], shown: Mapping[Key, Performance]) -> float:
    """Return the capacity that may be required, in requests per second: infinite once step times are known.

    Until then, the first samples can be off by a factor of ten, so the ready replicas are doubled at most.
    """
    running = [variant for variant in variants if variant.ready_replicas]
    if not running or any(variant.capacity is None or not shown[variant.key].is_new for variant in running):
        return math.inf
    return _MOST_GROWTH * sum(
        [item.ready_replicas * item.capacity.requests_per_second for item in running if item.capacity]
    )


def _load_share(variants: Sequence[Variant], sizes: Mapping[Key, SizedCapacity]) -> float:
    """Return the planned utilization of a model's replicas relative to the assumed one, at most 1."""
    known = [(item.current_replicas, sizes[item.key]) for item in variants if item.key in sizes]
    planned = sum([count * size.full_rate * size.utilization for count, size in known])
    assumed = sum([count * size.full_rate * size.assumed_utilization for count, size in known])
    return min(1.0, planned / assumed) if planned and assumed else 1.0


def _given_up(memory: ModelMemory, cycle: _Cycle) -> Attainment:
    """Return the requests that clients gave up in this cycle, by the difference of two rates of arrival."""
    latest = memory.ticks[-1] if memory.ticks else None
    if latest is None or latest.moment_seconds != cycle.now_seconds:
        return NO_REQUESTS
    lost = (latest.requests_per_second - latest.counted_per_second) * cycle.settings.interval_seconds
    return Attainment(requests=lost, missed_ttft=lost)


def _by_model(variants: Sequence[Variant]) -> Mapping[Key, list[Variant]]:
    models: dict[Key, list[Variant]] = defaultdict(list)
    for variant in variants:
        models[variant.namespace, variant.model_id].append(variant)
    return {key: models[key] for key in sorted(models)}


def _utilization(variants: Sequence[Variant], before: ModelMemory, seen: ModelObservation) -> float:
    """Return the utilization of a model's ready replicas, by the last cycle; 0 if nothing follows from it.

    It is that of the most that was required within the hold, for which the replicas exist. Nothing follows if
    it is unknown, or if more requests arrive than the replicas serve at any latency, for example while others
    start: then the queue grows as long as that lasts, whatever utilization was planned for.
    """
    full = sum([before.full_rates.get(item.key, 0.0) * item.ready_replicas for item in variants])
    if not full or not before.required:
        return 0.0
    ticks, waiting = seen.memory.ticks, max(seen.waiting, before.waiting)
    if ticks and ticks[-1].requests_per_second > full:
        return 0.0
    return (max([rate for _, rate in before.required]) + waiting / _QUEUE_SECONDS) / full


def _performance(
    cycle: _Cycle, variant: Variant, *, lengths: Lengths | None, utilization: float
) -> Performance:
    keys = [(variant.namespace, pod.name) for pod in variant.replicas if pod.ready]
    return performance(
        cycle.facts.get(variant.key, _NO_FACTS),
        cycle.memory.variants.get(variant.key),
        [cycle.reports[key] for key in keys if key in cycle.reports],
        lengths=lengths,
        utilization=utilization,
    )


def _stated_lengths(load: ModelLoad | None) -> Lengths | None:
    if load is None or load.prompt_tokens is None or load.output_tokens is None:
        return None
    prompt = max(1.0, load.prompt_tokens)
    return Lengths(prompt=prompt, computed=prompt, output=max(1.0, load.output_tokens))


def _with_capacities(
    variants: Sequence[Variant],
    shown: Mapping[Key, Performance],
    facts: Mapping[Key, VariantFacts],
    lengths: Lengths | None,
    settings: SizingSettings,
) -> tuple[list[Variant], Mapping[Key, SizedCapacity]]:
    """Return the variants of a model with their capacities and start-up times, and how these were sized.

    A variant that cannot meet the targets is not counted on if another one can.
    """
    siblings = {
        variant.key: (variant, shown[variant.key]) for variant in variants if shown[variant.key].parameters
    }
    resized, sizes = [], {}
    for variant in variants:
        own, given = shown[variant.key], facts.get(variant.key, _NO_FACTS)
        capacity = variant.capacity  # a stated capacity is kept
        if capacity is None and lengths is not None:
            size = (
                capacity_of(own, given, lengths)
                or estimated_capacity(variant, given, [*siblings.values()], lengths)
                or catalog_capacity(own, given, lengths)
            )
            if size is not None:
                capacity, sizes[variant.key] = size.capacity, size
        resized.append(replace(variant, capacity=capacity, start_seconds=own.start_seconds))
    resized = [_limit_unknown(item, settings) for item in resized]
    some_meet = any(
        item.capacity and item.capacity.is_usable and not item.capacity.unreachable for item in resized
    )
    return [_not_counted(item) if some_meet and _misses(item) else item for item in resized], sizes


def _misses(variant: Variant) -> bool:
    return variant.capacity is not None and bool(variant.capacity.unreachable)


def _not_counted(variant: Variant) -> Variant:
    """Return a variant whose new replicas are not counted on."""
    return replace(variant, capacity=replace(variant.capacity, is_usable=False) if variant.capacity else None)


def _limit_unknown(variant: Variant, settings: SizingSettings) -> Variant:
    """Return a variant limited to the replicas that may start on an estimate alone: none, or one to try."""
    capacity = variant.capacity
    if capacity is None:
        return variant
    if not capacity.source.is_estimate or variant.current_replicas:
        return variant
    if not settings.tries_unknown_variants:
        return _not_counted(variant)
    most = 1 if variant.max_replicas is None else min(1, variant.max_replicas)
    return replace(variant, max_replicas=max(most, variant.min_replicas))


def _hard_targets(capacity: Capacity | None) -> tuple[str, ...]:
    """Return messages about targets that cannot be met, or leave little of a replica's throughput."""
    if capacity is None or not capacity.limits:
        return capacity.unreachable if capacity else ()
    tightest = capacity.limits[0]
    batches = [item.requests_per_second for item in capacity.limits if item.target is LimitingTarget.BATCH]
    if tightest.requests_per_second >= _LITTLE * max(batches, default=0):
        return capacity.unreachable
    # Without the share itself, which would change the status in every cycle.
    costly = f"{tightest.text} is only met at less than {percent(_LITTLE)} of a replica's throughput"
    return (*capacity.unreachable, costly)
