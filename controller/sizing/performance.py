"""Determine the performance of each variant: from its own step times, a profile, former ones, or a sibling's.

Prior knowledge counts as some samples next to the engines' own, so it is corrected from the first one on. The
catalog's estimate for the model and the accelerator only has ratios of step times to each other, until the
load has varied.

A variant that never ran has those of a sibling, scaled by accelerator performance: decoding is bound by
memory bandwidth and prefill by arithmetic, so alpha and beta scale with the former and delta with the latter.
If an accelerator type is unknown, the price ratio stands for both, at most 1. Without siblings, it has the
catalog's.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from statistics import median_high
from typing import Final

from controller.planning.load import CapacitySource
from controller.planning.snapshot import Variant
from controller.sizing.attainment import NO_EXPERIENCE, Attainment, Experience, attainment_of
from controller.sizing.capacity import SizedCapacity, batch_of, duration, sized_capacity
from controller.sizing.catalog import ACCELERATORS
from controller.sizing.lengths import Lengths
from controller.sizing.memory import VariantMemory
from controller.sizing.records import (
    DEFAULT_START_SECONDS,
    EngineInterval,
    EngineReport,
    LearnedProfile,
    StepParameters,
    Targets,
    VariantFacts,
)
from controller.sizing.step_time import (
    ENOUGH_SAMPLES,
    TYPICAL,
    IntervalSample,
    Prior,
    fit,
    learn,
    predicted_seconds,
    result_time,
    sample_of,
)

_PROFILE_SAMPLES: Final = 2.0
"""Weight of a declared profile in samples; it is low because a profile is often of another release or
machine.
"""

_FADED_SAMPLES: Final = 50.0
"""Number of own samples after which only the ratios of prior step times count: the engines show the speed."""

_MOST_FORMER_SAMPLES: Final = 20.0
"""Maximum weight of former samples, so that a changed engine is soon reflected."""

_OVERLOAD_TARGETS: Final = 2.0
"""Mean time to first token, relative to its target, from which an engine with a queue has too much load."""

_OVERLOAD_SECONDS: Final = 10.0
"""The same without a target: clients may give up."""

_SMOOTHING: Final = 0.2
"""Weight of a new sample in the moving average of the deviation from a declared profile."""

_SUSPICIOUS: Final = 0.25
"""Deviation from the step times of a declared profile, as a share of them, above which it is doubted."""

_FEWEST_COMPARED: Final = 2.0
"""Weight of the samples below which a declared profile is not doubted."""

_LONGEST_START_SECONDS: Final = 1800.0
"""Upper limit of a start-up time: a pod that became ready later had been ready before."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Performance:
    """The performance of one variant after a cycle."""

    parameters: StepParameters | None
    source: CapacitySource
    memory: VariantMemory
    start_seconds: float
    is_new: bool = False
    """Whether the step times are known from few samples only, and neither from a profile nor from the status.
    """

    problems: tuple[str, ...] = ()
    attained: tuple[Attainment, ...] = ()
    """What each engine attained in this cycle."""

    learned: LearnedProfile | None = None
    """Performance to publish, so that learning continues after a restart; None if none was ever learned."""


def performance(
    facts: VariantFacts,
    before: VariantMemory | None,
    reports: Sequence[EngineReport],
    *,
    lengths: Lengths | None,
    utilization: float,
) -> Performance:
    """Return a variant's performance after a cycle; `before` is None in the first one.

    `lengths` are those of the model, and `utilization` is that of its replicas; 0 if it is unknown.
    """
    memory = _new_memory(facts) if before is None else before
    seen = [
        (report, report.interval, attainment_of(report.interval, facts.targets))
        for report in reports
        if report.interval
    ]
    # Those without long queues: only they show what engines attain, and how fast their steps are.
    calm = [item for item in seen if not _is_overloaded(item[0], item[1], facts.targets)]
    prior, prior_source = _prior(facts, memory)
    is_unknown = prior_source is CapacitySource.UNKNOWN
    expected = None if is_unknown and not memory.times.samples else _fit(memory, prior)
    # Nothing would ever be known of a variant that has had too much load from the first moment on.
    shown = calm or seen if expected is None and memory.result is None else calm
    samples = [
        sample
        for report, interval, _ in shown
        if (sample := sample_of(interval, lengths=lengths, engines=report.engines)) is not None
    ]
    times = learn(memory.times, samples, expected=expected)
    result = result_time(memory.result, [item[:2] for item in shown], lengths=lengths)
    parameters = result or (expected if times is memory.times else fit(times, prior))
    deviation, compared = _compare(memory, facts, samples)
    memory = VariantMemory(
        times=times,
        fit=(prior, parameters),
        result=result,
        former=memory.former,
        experience=_experience(memory, facts, [item for *_, item in calm], utilization),
        promise=facts.targets,
        utilization=memory.utilization,
        deviation=deviation,
        compared=compared,
        start_seconds=_start_seconds(facts, memory),
        kv_tokens=_kv_tokens(memory, reports),
        engines=min([report.engines for report in reports], default=memory.engines),
    )
    is_learned = result is not None or times.samples >= ENOUGH_SAMPLES
    is_learned = is_learned or (times.samples > 0 and is_unknown)
    return Performance(
        parameters=parameters,
        source=CapacitySource.LEARNED if is_learned else prior_source,
        memory=memory,
        start_seconds=DEFAULT_START_SECONDS if memory.start_seconds is None else memory.start_seconds,
        is_new=is_unknown and times.samples < ENOUGH_SAMPLES and result is None,
        problems=_doubts(facts, memory),
        attained=tuple([item for *_, item in seen]),
        learned=_to_publish(parameters, memory) if is_learned else memory.former,
    )


def _new_memory(facts: VariantFacts) -> VariantMemory:
    """Return the memory of a variant that the controller begins to watch."""
    former = facts.learned
    return VariantMemory(
        former=former,
        engines=facts.engines,
        experience=Experience(former=former.utilization) if former else NO_EXPERIENCE,
        promise=facts.targets,
    )


def _is_overloaded(report: EngineReport, interval: EngineInterval, targets: Targets) -> bool:
    """Return whether an engine's requests wait so long that they miss their target, or clients give up.

    Such an engine computes prompts of requests that leave before their first token, and counts none of their
    tokens: its steps would seem slow for their load. What its requests miss is the consequence of a shortage,
    and not of the utilization that is planned for.
    """
    had_queue = report.waiting or interval.waiting_change < 0  # without one, long prompts alone take long
    target = targets.ttft_seconds
    most = _OVERLOAD_SECONDS if target is None else _OVERLOAD_TARGETS * target
    return bool(had_queue) and interval.mean_wait_seconds >= most


def _experience(
    memory: VariantMemory, facts: VariantFacts, seen: Sequence[Attainment], utilization: float
) -> Experience:
    """Return what the engines attained, with this cycle; it begins anew with new targets."""
    known = memory.experience if memory.promise == facts.targets else NO_EXPERIENCE
    known = known.discount()
    # In the first cycle, nothing was planned for yet.
    usual = utilization if memory.utilization is None else memory.utilization
    for item in seen:
        known = known.add(item, utilization=utilization, usual=usual)
    return known


def _fit(memory: VariantMemory, prior: Prior) -> StepParameters | None:
    """Return the parameters that fit the observations before this cycle."""
    known = memory.fit
    return known[1] if known is not None and known[0] == prior else fit(memory.times, prior)


def _to_publish(parameters: StepParameters | None, memory: VariantMemory) -> LearnedProfile | None:
    if parameters is None:
        return None
    former = min(memory.former.samples, _MOST_FORMER_SAMPLES) if memory.former else 0.0
    return LearnedProfile(
        parameters=parameters,
        samples=memory.times.samples + former if memory.result is None else 1.0,
        kv_tokens=memory.kv_tokens,
        utilization=memory.utilization,
    )


def capacity_of(own: Performance, facts: VariantFacts, lengths: Lengths) -> SizedCapacity | None:
    """Return the capacity of a replica from data about the variant itself, or None."""
    if own.parameters is None:
        return None
    return _capacity(own.parameters, facts, own.memory, lengths, own.memory.experience, source=own.source)


def estimated_capacity(
    variant: Variant, facts: VariantFacts, siblings: Sequence[tuple[Variant, Performance]], lengths: Lengths
) -> SizedCapacity | None:
    """Return the estimated capacity of a variant that never ran: the least by its siblings, or None."""
    estimates = [
        _capacity(
            estimate(variant, sibling, theirs.parameters),
            facts,
            theirs.memory,
            lengths,
            NO_EXPERIENCE,
            source=CapacitySource.ESTIMATED,
        )
        for sibling, theirs in siblings
        if theirs.parameters is not None
    ]
    return min(estimates, key=lambda item: item.capacity.requests_per_second, default=None)


def catalog_capacity(own: Performance, facts: VariantFacts, lengths: Lengths) -> SizedCapacity | None:
    """Return the capacity by the catalog's estimate; None without one, or if the weights do not fit."""
    if facts.estimate is None or not facts.estimate.kv_tokens:
        return None
    size = own.memory.kv_tokens or facts.estimate.kv_tokens * own.memory.engines
    memory = replace(own.memory, kv_tokens=size)
    return _capacity(
        facts.estimate.parameters, facts, memory, lengths, NO_EXPERIENCE, source=CapacitySource.CATALOG
    )


def _capacity(
    parameters: StepParameters,
    facts: VariantFacts,
    memory: VariantMemory,
    lengths: Lengths,
    experience: Experience,
    *,
    source: CapacitySource,
) -> SizedCapacity:
    return sized_capacity(
        parameters,
        lengths,
        facts.targets,
        experience,
        batch=_batch(facts, memory, lengths),
        engines=memory.engines,
        source=source,
    )


def _batch(facts: VariantFacts, memory: VariantMemory, lengths: Lengths) -> float:
    """Return the sequences that one engine computes at once."""
    kv_tokens = None if memory.kv_tokens is None else memory.kv_tokens / memory.engines
    return batch_of(lengths, max_num_seqs=facts.max_num_seqs, kv_tokens=kv_tokens)


def _prior(facts: VariantFacts, memory: VariantMemory) -> tuple[Prior, CapacitySource]:
    """Return the prior and its source: the status takes precedence over the profile."""
    rest = max(0.0, 1 - memory.times.samples / _FADED_SAMPLES)
    if memory.former is not None:
        weight = rest * min(memory.former.samples, _MOST_FORMER_SAMPLES)
        return Prior(parameters=memory.former.parameters, weight=weight), CapacitySource.LAST_KNOWN
    if facts.profile is not None:
        return Prior(
            parameters=facts.profile.parameters, weight=rest * _PROFILE_SAMPLES
        ), CapacitySource.PROFILE
    if facts.estimate is not None:
        # Only the ratios: while the load has not varied, an estimate that is off by two as a whole would make
        # a capacity that follows from it and from samples wrong by more than that.
        return Prior(parameters=facts.estimate.parameters), CapacitySource.UNKNOWN
    return TYPICAL, CapacitySource.UNKNOWN


def _start_seconds(facts: VariantFacts, before: VariantMemory) -> float | None:
    """Return the usual time from a pod's start until it is ready, in seconds."""
    usual = usual_start_seconds(facts.start_seconds)
    if usual is not None:
        return usual
    return facts.known_start_seconds if before.start_seconds is None else before.start_seconds


def usual_start_seconds(seen: Sequence[float]) -> float | None:
    """Return the usual start-up time of some pods, in seconds; None without any.

    It is the median, so that one pod that was temporarily unready does not distort it.
    """
    plausible = [seconds for seconds in seen if 0 <= seconds <= _LONGEST_START_SECONDS]
    return median_high(plausible) if plausible else None


def _kv_tokens(before: VariantMemory, reports: Sequence[EngineReport]) -> int | None:
    sizes = [report.kv_tokens for report in reports if report.kv_tokens]
    if sizes:
        return min(sizes)
    return before.kv_tokens or (before.former.kv_tokens if before.former else None)


def _compare(
    before: VariantMemory, facts: VariantFacts, samples: Sequence[IntervalSample]
) -> tuple[float | None, tuple[float, float, float] | None]:
    """Return the deviation from the declared profile with the new samples, and the latest comparison."""
    if facts.profile is None:
        return None, None
    deviation, compared = before.deviation, before.compared
    for sample in samples:
        predicted = predicted_seconds(facts.profile.parameters, sample)
        ratio = sample.tau_seconds / predicted
        deviation = ratio if deviation is None else deviation + _SMOOTHING * (ratio - deviation)
        compared = sample.sequences, predicted, sample.tau_seconds
    return deviation, compared


def _doubts(facts: VariantFacts, memory: VariantMemory) -> tuple[str, ...]:
    deviation, compared = memory.deviation, memory.compared
    if facts.profile is None or deviation is None or compared is None:
        return ()
    if memory.times.samples < _FEWEST_COMPARED or abs(deviation - 1.0) <= _SUSPICIOUS:
        return ()
    sequences, predicted, shown = compared
    promised = f"{duration(predicted)} ITL at batch {sequences:.0f}"
    return (f"variantProfile predicts {promised}, engines show {duration(shown)}",)


def estimate(variant: Variant, sibling: Variant, parameters: StepParameters) -> StepParameters:
    """Return step times of a variant, scaled from those of a sibling of the same model."""
    decode, prompt = _shares(variant, sibling)
    return StepParameters(
        alpha_ms=parameters.alpha_ms / decode,
        beta_ms=parameters.beta_ms / decode,
        delta_ms=parameters.delta_ms / prompt,
        gamma_ms=parameters.gamma_ms / prompt,
    )


def _shares(variant: Variant, sibling: Variant) -> tuple[float, float]:
    """Return the speed of decoding and of prefill relative to a sibling; more than 1 is faster."""
    own, other = ACCELERATORS.get(variant.accelerator), ACCELERATORS.get(sibling.accelerator)
    count = variant.accelerators_per_replica / max(1, sibling.accelerators_per_replica) or 1.0
    if variant.accelerator == sibling.accelerator:
        # The same type differs only in the number of accelerators that share the work, without loss.
        return count, count
    if own and other:
        return count * own.bandwidth / other.bandwidth, count * own.arithmetic / other.arithmetic
    price = variant.cost_per_replica / sibling.cost_per_replica if sibling.cost_per_replica else Decimal(1)
    # A dearer type need not be faster: by its price alone, it is never taken for better than the sibling.
    share = min(1.0, float(price) or 1.0)
    return share, share
