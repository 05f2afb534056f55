"""Decide the replicas of a target, with the reasons and the updated history.

The steps and their order are those of docs/policies.md: the highest recommendation of all metrics, panic
mode, tolerance, stabilization windows, rates, the grace period before zero, and bounds. Windows are those of
a HorizontalPodAutoscaler. Tolerance compares numbers of replicas instead of a ratio, after rounding up. Each
step that changes the number is recorded; the last one decides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from controller.policies.history import HORIZON_SECONDS, History
from controller.policies.policy import (
    Activity,
    Bounds,
    MetricObservation,
    Observation,
    PanicRules,
    ScalingPolicy,
)
from controller.policies.recommending import (
    Limit,
    LimitStep,
    Recommendation,
    correction_steps,
    recommendation_of,
)
from controller.sizing.records import DEFAULT_SIZING, SizingSettings

_WHOLE_PERCENT = 100
_QUIET: Final = (Activity.UNWATCHED, Activity.IDLE)
"""Activities that allow zero replicas: an unknown one does not."""
_ASLEEP: Final = {
    Activity.UNWATCHED: "at 0 replicas, no pod reports any metric",
    Activity.UNKNOWN: "at 0 replicas, no pod reports any metric, and the activity metric is not known",
    Activity.IDLE: "at 0 replicas, without activity",
    Activity.SEEN: "",
}
_GAP_CYCLES = 4
"""Cycles without a recommendation after which the history restarts with the current replicas as a
recommendation.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class ScalingDecision:
    """The replicas of one target or of several together, with all reasons."""

    current_replicas: int
    replicas: int
    wanted_replicas: int | None
    """Replicas that the metrics ask for; None while no metric is known."""

    needed: float | None
    """Unrounded replicas that the metrics ask for; None while no metric is known."""

    recommendations: tuple[Recommendation, ...]
    steps: tuple[LimitStep, ...]
    """The limits that changed the recommendation, in order."""

    panic_since_seconds: float | None
    history: History
    activity: Activity = Activity.UNWATCHED

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The limits that applied, without duplicates, in order."""
        return tuple(dict.fromkeys(step.limit for step in self.steps))


def decide(
    policy: ScalingPolicy,
    bounds: Bounds,
    history: History,
    observation: Observation,
    now_seconds: float,
    *,
    settings: SizingSettings = DEFAULT_SIZING,
) -> ScalingDecision:
    """Return the decision for the current time. It is idempotent."""
    current = observation.current_replicas
    recommendations = tuple(
        recommendation_of(
            metric,
            observation.metrics.get(metric.name, MetricObservation()),
            current_replicas=current,
            silent_since_seconds=history.silent.get(metric.name),
            now_seconds=now_seconds,
            settings=settings,
        )
        for metric in policy.metrics
    )
    known = [item for item in recommendations if item.replicas is not None]
    recommended = max((item.replicas or 0 for item in known), default=None)
    if current == 0 and observation.activity is Activity.SEEN:
        recommended = max(recommended or 0, 1)
    # Some of the metrics can show that more is needed, but only all of them that less is.
    may_fall = bool(known) and all(item.signal.decides for item in recommendations)
    history = _with_times(history.at(now_seconds), recommendations, observation, now_seconds)
    # Rate limits count from the replicas of their period: before the first decision, the current ones.
    # Without this entry, they would count from the decision itself.
    if not history.counts:
        history = history.add_request(now_seconds - HORIZON_SECONDS, current)
    # A low number that follows from missing data is not recorded: it would hold back scaling up for a window.
    if recommended is not None and (may_fall or recommended > current):
        history = _with_recommendation(history, recommended, current, now_seconds, settings)
    history = _with_panic(policy.panic, history, current, recommended, now_seconds)
    in_panic = history.panic_until_seconds is not None
    steps = tuple(
        _steps(policy, bounds, history, observation, recommended, may_fall=may_fall, now_seconds=now_seconds)
    )
    replicas = steps[-1].after if steps else (current if recommended is None else recommended)
    return ScalingDecision(
        current_replicas=current,
        replicas=replicas,
        wanted_replicas=recommended,
        needed=max((item.needed or 0.0 for item in known), default=None),
        recommendations=recommendations,
        steps=steps,
        panic_since_seconds=history.panic_since_seconds if in_panic else None,
        history=history.add_request(now_seconds, replicas),
        activity=observation.activity,
    )


def _with_times(
    history: History,
    recommendations: tuple[Recommendation, ...],
    observation: Observation,
    now_seconds: float,
) -> History:
    """Return the history with silent metrics and the times of decision and activity updated.

    A target is idle only if that is certain: there are replicas, all of their metrics are fresh and zero, and
    the activity source, if watched, shows none.
    """
    is_idle = (
        observation.current_replicas > 0
        and observation.activity in _QUIET
        and all(item.signal.decides and not item.total for item in recommendations)
    )
    is_active = history.active_seconds is None or not is_idle
    return replace(
        history,
        decided_seconds=now_seconds,
        active_seconds=now_seconds if is_active else history.active_seconds,
        silent={
            item.metric: item.silent_since_seconds
            for item in recommendations
            if item.silent_since_seconds is not None
        },
    )


def _with_recommendation(
    history: History, recommended: int, current: int, now_seconds: float, settings: SizingSettings
) -> History:
    gap_seconds = max(settings.fresh_seconds, _GAP_CYCLES * settings.interval_seconds)
    last_seconds = history.recommended_seconds
    if last_seconds is None or now_seconds - last_seconds > gap_seconds:
        history = history.add_recommendation(now_seconds, current)
    return history.add_recommendation(now_seconds, recommended)


def _with_panic(
    rules: PanicRules | None, history: History, current: int, recommended: int | None, now_seconds: float
) -> History:
    """Return the history with panic mode started, extended or ended."""
    since, until = history.panic_since_seconds, history.panic_until_seconds
    if rules is None or until is None or until < now_seconds:
        since = until = None
    # Without replicas, the threshold is 0 and any demand counts as a surge.
    if (
        rules is not None
        and rules.hold_seconds > 0
        and recommended is not None
        and recommended > current
        and recommended * _WHOLE_PERCENT >= current * rules.threshold_percent
    ):
        since = now_seconds if since is None else since
        until = now_seconds + rules.hold_seconds
    return replace(history, panic_since_seconds=since, panic_until_seconds=until)


def _steps(
    policy: ScalingPolicy,
    bounds: Bounds,
    history: History,
    observation: Observation,
    recommended: int | None,
    *,
    may_fall: bool,
    now_seconds: float,
) -> Iterator[LimitStep]:
    """Yield the steps that change the recommendation, each starting with the result of the one before."""
    current = observation.current_replicas
    reached = current if recommended is None else recommended
    in_panic = history.panic_until_seconds is not None
    if recommended is None:
        detail = "no metric is known" if current else _ASLEEP[observation.activity]
        yield LimitStep(limit=Limit.METRICS, before=current, after=current, detail=detail)
    elif not may_fall and recommended < current:
        detail = "a metric is old or not known, so nothing is scaled down"
        yield LimitStep(limit=Limit.METRICS, before=recommended, after=current, detail=detail)
        reached = current
    elif (
        recommended != current
        and abs(current - recommended) * _WHOLE_PERCENT < current * policy.tolerance_percent
    ):
        detail = f"{abs(current - recommended)} is less than {policy.tolerance_percent} % of {current}"
        yield LimitStep(limit=Limit.TOLERANCE, before=recommended, after=current, detail=detail)
        reached = current
    else:
        for step in correction_steps(
            policy,
            history,
            current=current,
            recommended=recommended,
            in_panic=in_panic,
            now_seconds=now_seconds,
        ):
            yield step
            reached = step.after
    yield from _bound_steps(bounds, history, observation, reached, now_seconds)


def _bound_steps(
    bounds: Bounds, history: History, observation: Observation, reached: int, now_seconds: float
) -> Iterator[LimitStep]:
    current = observation.current_replicas
    idle_seconds = now_seconds - (now_seconds if history.active_seconds is None else history.active_seconds)
    if reached == 0 and current > 0:
        detail = ""
        if observation.activity not in _QUIET:
            detail = f"activity before the replicas is {observation.activity.lower()}"
        elif idle_seconds < bounds.grace_seconds:
            detail = f"idle for {idle_seconds:.0f} s of {bounds.grace_seconds:g} s"
        if detail:
            yield LimitStep(limit=Limit.GRACE, before=reached, after=1, detail=detail)
            reached = 1
    # Bounds are the last step, so they hold whatever the others yield, and also without any metric.
    bound = min(max(reached, bounds.min_replicas), bounds.max_replicas)
    if bound != reached:
        detail = f"minReplicas {bound}" if bound > reached else f"maxReplicas {bound}"
        yield LimitStep(limit=Limit.BOUND, before=reached, after=bound, detail=detail)
