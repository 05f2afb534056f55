"""Compute the replicas that metrics ask for, before any limits.

A metric asks for its sum over the replicas divided by its target per replica. Missing data never counts as
zero: a stale or unknown metric scales nothing down, and pods that have been silent for longer than the
timeout count as if they were exactly at the target.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from controller.planning.load import Signal
from controller.policies.history import MOST_REPLICAS
from controller.policies.observation import MetricSeen, PodValue, Value
from controller.policies.policy import PolicyMetric
from controller.sizing.records import SizingSettings
from controller.sizing.trust import Grade, grade

_DIGITS: Final = 9
"""Decimals to which replicas are rounded before they are rounded up."""

_LARGEST: Final = 1e300
"""Larger values are capped at this, so that sums stay finite."""


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
    seen: MetricSeen,
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
    counted = _counted_pods(seen.pods, graded, settings)
    if graded.signal is Signal.UNKNOWN:
        return Recommendation(
            metric=metric.name,
            target=metric.target,
            signal=graded.signal,
            silent_pods=len(seen.pods),
            silent_since_seconds=graded.silent_since_seconds,
        )
    total = math.fsum(min(value.value, _LARGEST) for _, value in counted)
    capacity = math.fsum(pod.capacity for pod, _ in counted)
    missing = math.fsum(pod.capacity for pod in seen.pods) - capacity
    needed = _needed_replicas(
        total, metric.target, capacity=capacity, missing=missing, current_replicas=current_replicas
    )
    return Recommendation(
        metric=metric.name,
        target=metric.target,
        signal=graded.signal,
        total=total,
        needed=needed,
        replicas=whole(needed),
        pods=len(counted),
        silent_pods=len(seen.pods) - len(counted),
        age_seconds=graded.age_seconds,
        silent_since_seconds=graded.silent_since_seconds,
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
    asked = _ratio(total, target)
    if asked >= capacity:
        return max(asked, float(current_replicas)) if capacity < current_replicas else asked
    if missing <= 0:
        return asked
    return max(asked, min(asked + missing, float(current_replicas)))


def _ratio(total: float, target: float) -> float:
    return (
        min(total / target, float(MOST_REPLICAS)) if target > total / MOST_REPLICAS else float(MOST_REPLICAS)
    )
