"""Limit one scaling step: stabilization windows, rate limits per period, and panic mode."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from controller.planning.wording import count
from controller.policies.history import History
from controller.policies.policy import PanicRules, ScalingPolicy, StableLimits

_WHOLE_PERCENT = 100


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
class Step:
    """One limit, with the replicas before and after it."""

    limit: Limit
    before: int
    after: int
    detail: str


def correction_steps(
    policy: ScalingPolicy, history: History, *, current: int, wanted: int, in_panic: bool, now_seconds: float
) -> Iterator[Step]:
    """Yield each limit that applies between current and wanted replicas; the last one decides."""
    if in_panic and policy.panic is not None:
        yield from _in_panic(policy.panic, history, current, wanted, now_seconds)
    elif wanted > current:
        yield from _upwards(policy.up, history, current, wanted, now_seconds)
    elif wanted < current:
        yield from _downwards(policy.down, history, current, wanted, now_seconds)


def _upwards(
    limits: StableLimits, history: History, current: int, wanted: int, now_seconds: float
) -> Iterator[Step]:
    lowest = history.lowest(now_seconds, limits.window_seconds)
    steady = wanted if lowest is None else max(current, min(wanted, lowest))
    if steady != wanted:
        detail = f"the lowest recommendation of the last {limits.window_seconds:g} s is {lowest}"
        yield Step(limit=Limit.WINDOW, before=wanted, after=steady, detail=detail)
    if limits.period_seconds <= 0:
        return
    start = _fewest(history, current, now_seconds, limits.period_seconds)
    by_percent = start * limits.percent // _WHOLE_PERCENT if start else min(1, limits.percent)
    choose = max if limits.select == "Or" else min
    reach = max(current, start + choose(limits.instances, by_percent))
    if steady > reach:
        yield Step(limit=Limit.RATE, before=steady, after=reach, detail=_rate(limits, "up", start))


def _downwards(
    limits: StableLimits, history: History, current: int, wanted: int, now_seconds: float
) -> Iterator[Step]:
    highest = history.highest(now_seconds, limits.window_seconds)
    steady = wanted if highest is None else min(current, max(wanted, highest))
    if steady != wanted:
        detail = f"the highest recommendation of the last {limits.window_seconds:g} s is {highest}"
        yield Step(limit=Limit.WINDOW, before=wanted, after=steady, detail=detail)
    if limits.period_seconds <= 0:
        return
    most = history.most(now_seconds, limits.period_seconds)
    start = current if most is None else max(current, most)
    by_percent = start * limits.percent // _WHOLE_PERCENT
    choose = max if limits.select == "Or" else min
    reach = min(current, start - choose(limits.instances, by_percent))
    if steady < reach:
        yield Step(limit=Limit.RATE, before=steady, after=reach, detail=_rate(limits, "down", start))


def _in_panic(
    rules: PanicRules, history: History, current: int, wanted: int, now_seconds: float
) -> Iterator[Step]:
    if wanted < current:
        detail = "nothing is scaled down in panic mode"
        yield Step(limit=Limit.PANIC, before=wanted, after=current, detail=detail)
        return
    start = _fewest(history, current, now_seconds, rules.period_seconds)
    reach = max(current, start + start * rules.percent // _WHOLE_PERCENT)
    if rules.period_seconds > 0 and start and wanted > reach:
        within = f"within {rules.period_seconds:g} s in panic mode"
        detail = f"up by at most {rules.percent} % {within}, from {count(start, 'replica')}"
        yield Step(limit=Limit.RATE, before=wanted, after=reach, detail=detail)


def _fewest(history: History, current: int, now_seconds: float, period_seconds: float) -> int:
    fewest = history.fewest(now_seconds, period_seconds)
    return current if fewest is None else min(current, fewest)


def _rate(limits: StableLimits, way: str, start: int) -> str:
    which = "more" if limits.select == "Or" else "less"
    return (
        f"{way} by at most {count(limits.instances, 'replica')} or {limits.percent} %, whichever is {which},"
        f" within {limits.period_seconds:g} s, from {count(start, 'replica')}"
    )
