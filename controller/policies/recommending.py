"""Compute the replicas that metrics ask for, and limit one step towards them.

A metric asks for its sum over the replicas divided by its target per replica. Missing data never counts as
zero: a stale or unknown metric scales nothing down, and pods that have been silent for longer than the
timeout count as if they were exactly at the target. A step is limited by stabilization windows, rate limits
per period, and panic mode.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from controller.planning.load import Signal
from controller.planning.wording import count
from controller.policies.history import MOST_REPLICAS, History
from controller.policies.policy import (
    MetricObservation,
    PanicRules,
    PodValue,
    PolicyMetric,
    ScalingPolicy,
    StableLimits,
    Value,
)
from controller.sizing.demand import Grade, grade
from controller.sizing.records import SizingSettings

_DIGITS: Final = 9
"""Decimals to which replicas are rounded before they are rounded up: no error of a sum may add a replica."""

_LARGEST: Final = 1e300
"""Larger values are capped at this, so that sums stay finite."""

_WHOLE_PERCENT: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Recommendation:
    """The recommendation of one metric; `replicas` is None if it is unknown."""

    metric: str
    target: float
    signal: Signal
    total: float | None = None
    """Sum over the replicas that count."""

    needed: float | None = None
    """Unrounded replicas that it asks for."""

    replicas: int | None = None
    pods: int = 0
    """Ready pods that count."""

    silent_pods: int = 0
    age_seconds: float | None = None
    silent_since_seconds: float | None = None


def recommendation_of(
    metric: PolicyMetric,
    seen: MetricObservation,
    *,
    current_replicas: int,
    silent_since_seconds: float | None,
    now_seconds: float,
    settings: SizingSettings,
) -> Recommendation:
    """Return the recommendation of a metric, with the quality of its data."""
    if seen.total is not None:
        return _of_total(metric, seen.total, settings)
    known = [pod.seen if pod.seen and pod.seen.is_known else None for pod in seen.pods]
    graded = grade(
        [value.age_seconds if value else None for value in known],
        silent_since_seconds=silent_since_seconds,
        now_seconds=now_seconds,
        settings=settings,
    )
    unknown = Recommendation(
        metric=metric.name,
        target=metric.target,
        signal=graded.signal,
        silent_pods=len(seen.pods),
        silent_since_seconds=graded.silent_since_seconds,
    )
    if graded.signal is Signal.UNKNOWN:
        return unknown
    counted = _counted_pods(seen.pods, graded, settings)
    total = math.fsum(min(value.value, _LARGEST) for _, value in counted)
    capacity = math.fsum(pod.capacity for pod, _ in counted)
    missing = math.fsum(pod.capacity for pod in seen.pods) - capacity
    needed = _needed_replicas(
        total, metric.target, capacity=capacity, missing=missing, current_replicas=current_replicas
    )
    return replace(
        unknown,
        total=total,
        needed=needed,
        replicas=whole(needed),
        pods=len(counted),
        silent_pods=len(seen.pods) - len(counted),
        age_seconds=graded.age_seconds,
    )


def whole(needed: float) -> int:
    """Return a fractional number of replicas rounded up, capped at MOST_REPLICAS."""
    return MOST_REPLICAS if needed >= MOST_REPLICAS else math.ceil(round(needed, _DIGITS))


def _of_total(metric: PolicyMetric, total: Value, settings: SizingSettings) -> Recommendation:
    if not total.is_known or total.age_seconds > settings.held_seconds:
        return Recommendation(metric=metric.name, target=metric.target, signal=Signal.UNKNOWN)
    needed = _ratio(total.value, metric.target)
    return Recommendation(
        metric=metric.name,
        target=metric.target,
        signal=Signal.FRESH if total.age_seconds <= settings.fresh_seconds else Signal.HELD,
        total=total.value,
        needed=needed,
        replicas=whole(needed),
        age_seconds=total.age_seconds,
    )


def _counted_pods(
    pods: tuple[PodValue, ...], graded: Grade, settings: SizingSettings
) -> list[tuple[PodValue, Value]]:
    """Return the pods whose values count: with a quorum only fresh ones."""
    oldest = settings.held_seconds if graded.signal is Signal.HELD else settings.fresh_seconds
    return [
        (pod, pod.seen)
        for pod in pods
        if pod.seen is not None and pod.seen.is_known and pod.seen.age_seconds <= oldest
    ]


def _needed_replicas(
    total: float, target: float, *, capacity: float, missing: float, current_replicas: int
) -> float:
    """Return the unrounded replicas for a total that pods share.

    At or above the target, pods that are not ready yet will share the total, so fewer replicas than now are
    never recommended. Below the target, silent pods may have as much as their target.
    """
    ratio = _ratio(total, target)
    if ratio >= capacity:
        return max(ratio, float(current_replicas)) if capacity < current_replicas else ratio
    if missing <= 0:
        return ratio
    return max(ratio, min(ratio + missing, float(current_replicas)))


def _ratio(total: float, target: float) -> float:
    return total / target if target > total / MOST_REPLICAS else float(MOST_REPLICAS)


class Limit(StrEnum):
    """The rule that made a decision differ from the metrics' recommendation."""

    METRICS = "Metrics"
    """A metric is stale or unknown."""

    TOLERANCE = "Tolerance"
    WINDOW = "StabilizationWindow"
    RATE = "Rate"
    PANIC = "Panic"
    GRACE = "ScaleToZeroGracePeriod"
    BOUND = "Bound"
    PLACEMENT = "Placement"
    """The placement plan grants another number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LimitStep:
    """One limit, with the replicas before and after it."""

    limit: Limit
    before: int
    after: int
    detail: str


def correction_steps(
    policy: ScalingPolicy,
    history: History,
    *,
    current: int,
    recommended: int,
    in_panic: bool,
    now_seconds: float,
) -> Iterator[LimitStep]:
    """Yield each limit that applies between current and wanted replicas; the last one decides."""
    if in_panic and policy.panic is not None:
        yield from _in_panic(policy.panic, history, current, recommended, now_seconds)
    elif recommended > current:
        yield from _upwards(policy.up, history, current, recommended, now_seconds)
    elif recommended < current:
        yield from _downwards(policy.down, history, current, recommended, now_seconds)


def _upwards(
    limits: StableLimits, history: History, current: int, recommended: int, now_seconds: float
) -> Iterator[LimitStep]:
    lowest = history.lowest(now_seconds, limits.window_seconds)
    # A window only holds replicas back: it never changes them in the other direction.
    steady = recommended if lowest is None else max(current, min(recommended, lowest))
    if steady != recommended:
        detail = f"the lowest recommendation of the last {limits.window_seconds:g} s is {lowest}"
        yield LimitStep(limit=Limit.WINDOW, before=recommended, after=steady, detail=detail)
    if limits.period_seconds <= 0:
        return
    # The fewest of the period, not the current ones: replicas added within it count against the limit.
    start = _fewest(history, current, now_seconds, limits.period_seconds)
    # A percentage of no replicas would keep a target at zero: it allows one.
    by_percent = start * limits.percent // _WHOLE_PERCENT if start else min(1, limits.percent)
    choose = max if limits.select == "Or" else min
    reach = max(current, start + choose(limits.instances, by_percent))
    if steady > reach:
        yield LimitStep(limit=Limit.RATE, before=steady, after=reach, detail=_rate(limits, "up", start))


def _downwards(
    limits: StableLimits, history: History, current: int, recommended: int, now_seconds: float
) -> Iterator[LimitStep]:
    highest = history.highest(now_seconds, limits.window_seconds)
    steady = recommended if highest is None else min(current, max(recommended, highest))
    if steady != recommended:
        detail = f"the highest recommendation of the last {limits.window_seconds:g} s is {highest}"
        yield LimitStep(limit=Limit.WINDOW, before=recommended, after=steady, detail=detail)
    if limits.period_seconds <= 0:
        return
    most = history.most(now_seconds, limits.period_seconds)
    start = current if most is None else max(current, most)
    by_percent = start * limits.percent // _WHOLE_PERCENT
    choose = max if limits.select == "Or" else min
    reach = min(current, start - choose(limits.instances, by_percent))
    if steady < reach:
        yield LimitStep(limit=Limit.RATE, before=steady, after=reach, detail=_rate(limits, "down", start))


def _in_panic(
    rules: PanicRules, history: History, current: int, recommended: int, now_seconds: float
) -> Iterator[LimitStep]:
    if recommended < current:
        detail = "nothing is scaled down in panic mode"
        yield LimitStep(limit=Limit.PANIC, before=recommended, after=current, detail=detail)
        return
    start = _fewest(history, current, now_seconds, rules.period_seconds)
    reach = max(current, start + start * rules.percent // _WHOLE_PERCENT)
    # A percentage of no replicas is nothing, so a surge from zero is not limited.
    if rules.period_seconds > 0 and start and recommended > reach:
        within = f"within {rules.period_seconds:g} s in panic mode"
        detail = f"up by at most {rules.percent} % {within}, from {count(start, 'replica')}"
        yield LimitStep(limit=Limit.RATE, before=recommended, after=reach, detail=detail)


def _fewest(history: History, current: int, now_seconds: float, period_seconds: float) -> int:
    fewest = history.fewest(now_seconds, period_seconds)
    return current if fewest is None else min(current, fewest)


def _rate(limits: StableLimits, way: str, start: int) -> str:
    which = "more" if limits.select == "Or" else "less"
    return (
        f"{way} by at most {count(limits.instances, 'replica')} or {limits.percent} %, whichever is {which},"
        f" within {limits.period_seconds:g} s, from {count(start, 'replica')}"
    )
