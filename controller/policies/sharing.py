"""Decide a whole binding: the combined replicas of its targets, the replicas of each, and why in a sentence.

Several targets are treated as one number of replicas of capacity 1, for which the policy decides; the result
is then split among them. Replicas of other capacities count by their capacity. Running replicas are not
exchanged: when more is required none are stopped, and when less is required none are started, because a
stopped replica is gone at once and a started one serves only minutes later. For the same reason, replicas
that are not ready stop first: they may never be, as with an image that cannot be pulled.

A rate limit for scaling down that is smaller than a replica still lets the smallest one go, once per period,
unless the limit is 0. Limits count what was chosen, in whole replicas of capacity 1, rounded up.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from controller.planning.load import Signal
from controller.planning.wording import count
from controller.policies.deciding import ScalingDecision, decide
from controller.policies.history import HORIZON_SECONDS, History
from controller.policies.policy import (
    Activity,
    Binding,
    Bounds,
    MetricObservation,
    Observation,
    PodValue,
    ScalingPolicy,
    Value,
    activity_among,
)
from controller.policies.recommending import Limit, LimitStep, Recommendation
from controller.policies.splitting import Share, capacity_of, split
from controller.sizing.records import DEFAULT_SIZING, SizingSettings

_NEARLY = 1e-6
"""Numerical error of a sum of capacities."""


@dataclass(frozen=True, kw_only=True, slots=True)
class TargetObservation:
    """The observation of one target: replicas, and the metric values of each scraped pod."""

    current_replicas: int
    ready_replicas: int = 0
    pods: tuple[Mapping[str, Value], ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingObservation:
    """The targets of a binding in order, and totals of metrics, which take precedence over pods' values."""

    targets: tuple[TargetObservation, ...]
    totals: Mapping[str, Value] = field(default_factory=dict)
    activity: tuple[Value | None, ...] | None = None
    """Activity values of the pods in front of the targets; None if none are watched."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedDecision:
    """The decision for all targets together, and the replicas of each."""

    whole: ScalingDecision
    replicas: tuple[int, ...]

    @property
    def history(self) -> History:
        """The updated history."""
        return self.whole.history


def decide_binding(
    policy: ScalingPolicy,
    binding: Binding,
    history: History,
    seen: BindingObservation,
    now_seconds: float,
    *,
    grace_seconds: float = 0.0,
    settings: SizingSettings = DEFAULT_SIZING,
) -> SharedDecision:
    """Return the decision for the current time."""
    shares = _shares(binding, seen.targets)
    serving = capacity_of(shares, [share.current_replicas for share in shares])
    bounds = Bounds(
        min_replicas=math.floor(capacity_of(shares, [share.min_replicas for share in shares]) + _NEARLY),
        max_replicas=math.ceil(capacity_of(shares, [share.max_replicas for share in shares]) - _NEARLY),
        grace_seconds=grace_seconds,
    )
    observation = Observation(
        current_replicas=math.ceil(serving - _NEARLY),
        metrics=_metrics(policy, binding, seen),
        activity=activity_among(seen.activity, settings),
    )
    whole = decide(policy, bounds, history, observation, now_seconds, settings=settings)
    if binding.expansion_percent is None:
        return SharedDecision(whole=whole, replicas=(whole.replicas,))
    required = _required_capacity(whole, serving)
    if Limit.RATE in whole.limits and whole.replicas < whole.current_replicas:
        required = min(
            required,
            _one_less(policy, bounds, history.at(now_seconds), whole, shares, now_seconds=now_seconds),
        )
    one_way = _one_way(required, shares, [target.ready_replicas for target in seen.targets])
    replicas = split(required, one_way, expansion_percent=binding.expansion_percent)
    chosen = math.ceil(capacity_of(shares, replicas) - _NEARLY)
    remembered = _with_choice(history.at(now_seconds), whole, chosen, now_seconds)
    return SharedDecision(whole=replace(whole, history=remembered), replicas=replicas)


def granted_decision(
    decision: SharedDecision,
    binding: Binding,
    granted: Sequence[int],
    *,
    history: History,
    now_seconds: float,
    detail: str,
) -> SharedDecision:
    """Return a decision with the replicas that the plan grants each target; `detail` explains a difference.

    `history` is the one before the decision. Replicas are clamped to the bounds of their targets.
    """
    replicas = tuple(
        min(max(count, target.min_replicas), target.max_replicas)
        for target, count in zip(binding.targets, granted, strict=True)
    )
    serving = binding.capacity_of(replicas)
    chosen = math.ceil(serving - _NEARLY)
    whole = decision.whole
    if replicas != decision.replicas and chosen != whole.replicas:
        step = LimitStep(limit=Limit.PLACEMENT, before=whole.replicas, after=chosen, detail=detail)
        whole = replace(whole, replicas=chosen, steps=(*whole.steps, step))
    remembered = _with_choice(history.at(now_seconds), whole, chosen, now_seconds)
    return replace(decision, whole=replace(whole, history=remembered), replicas=replicas)


def _one_less(
    policy: ScalingPolicy,
    bounds: Bounds,
    history: History,
    whole: ScalingDecision,
    shares: Sequence[Share],
    *,
    now_seconds: float,
) -> float:
    """Return the capacity after the smallest removable replica is gone, but at least what is required."""
    serving = capacity_of(shares, [share.current_replicas for share in shares])
    smallest = min(
        (share.capacity for share in shares if share.current_replicas > share.min_replicas), default=0.0
    )
    most = history.most(now_seconds, policy.down.period_seconds)
    # Like the rate limit, it counts from the most replicas within the period: only one goes in each.
    start = serving if most is None or most <= whole.current_replicas else float(most)
    steady = next(step.before for step in whole.steps if step.limit is Limit.RATE)
    active_seconds = whole.history.active_seconds
    is_graced = active_seconds is not None and now_seconds - active_seconds < bounds.grace_seconds
    return max(start - smallest, float(steady), 1.0 if is_graced else 0.0)


def _with_choice(history: History, whole: ScalingDecision, chosen: int, now_seconds: float) -> History:
    """Return the history with what was chosen instead of what was decided for the whole."""
    if not history.counts:
        history = history.add_request(now_seconds - HORIZON_SECONDS, whole.current_replicas)
    # `decide` has recorded its own number: it is dropped, so that rate limits see what was chosen.
    decided = replace(whole.history, peaks=history.peaks, dips=history.dips)
    return decided.add_request(now_seconds, chosen)


def _one_way(required: float, shares: Sequence[Share], ready: Sequence[int]) -> tuple[Share, ...]:
    """Return the targets with bounds by which what runs only grows, or only shrinks with ready ones last."""
    counts = [min(max(item.current_replicas, item.min_replicas), item.max_replicas) for item in shares]
    if required >= capacity_of(shares, counts) - _NEARLY:
        return tuple(replace(item, min_replicas=count) for item, count in zip(shares, counts, strict=True))
    # Between what is ready and what exists, only replicas that are not ready stop; below, the ready ones are
    # the most that may stay, so all others stop.
    serving = [
        min(max(here, item.min_replicas), count)
        for item, count, here in zip(shares, counts, ready, strict=True)
    ]
    if required < capacity_of(shares, serving) - _NEARLY:
        return tuple(replace(item, max_replicas=count) for item, count in zip(shares, serving, strict=True))
    return tuple(
        replace(item, min_replicas=least, max_replicas=most)
        for item, least, most in zip(shares, serving, counts, strict=True)
    )


def _shares(binding: Binding, targets: Sequence[TargetObservation]) -> tuple[Share, ...]:
    return tuple(
        Share(
            min_replicas=target.min_replicas,
            max_replicas=target.max_replicas,
            cost=target.cost,
            capacity=capacity,
            current_replicas=seen.current_replicas,
        )
        for target, capacity, seen in zip(binding.targets, binding.capacities, targets, strict=True)
    )


def _metrics(
    policy: ScalingPolicy, binding: Binding, seen: BindingObservation
) -> dict[str, MetricObservation]:
    return {
        metric.name: MetricObservation(
            total=seen.totals.get(metric.name),
            pods=tuple(
                PodValue(seen=pod.get(metric.name), capacity=capacity)
                for capacity, here in zip(binding.capacities, seen.targets, strict=True)
                for pod in here.pods
            ),
        )
        for metric in policy.metrics
    }


def _required_capacity(whole: ScalingDecision, serving: float) -> float:
    """Return the capacity that the targets must have together.

    Without a change it may be fractional: what is needed, or within the tolerance what exists, needs no
    additional whole replica of capacity 1.
    """
    if whole.replicas != whole.current_replicas:
        return float(whole.replicas)
    if whole.needed is None or Limit.TOLERANCE in whole.limits:
        return serving
    return max(serving, min(float(whole.replicas), whole.needed))


def sentence(decision: ScalingDecision) -> str:
    """Return the number of replicas with all reasons."""
    begin = count(decision.replicas, "replica")
    if decision.replicas != decision.current_replicas:
        begin = f"from {decision.current_replicas} to {begin}"
    limits = (f"{step.after} by {step.limit} ({step.detail})" for step in decision.steps)
    reasons = [*_demand_texts(decision), *limits]
    return f"{begin}: {'; '.join(reasons)}" if reasons else begin


def binding_sentence(binding: Binding, decision: SharedDecision) -> str:
    """Return the sentence for a whole binding: with several targets, the replicas of each come first."""
    text = sentence(decision.whole)
    if binding.expansion_percent is None:
        return text
    pairs = zip(binding.targets, decision.replicas, strict=True)
    shares = ", ".join(f"{number} of {target.target.name}" for target, number in pairs)
    unit = "" if binding.is_alike else "in replicas of capacity 1: "
    return f"{shares}; together {unit}{text}"


def recommendation_text(item: Recommendation) -> str:
    """Return the recommendation of one metric, with the quality of its data."""
    if item.replicas is None or item.total is None:
        return f"{item.metric} is not known{_silence(item)}"
    age_seconds = round(item.age_seconds or 0)
    age_text = f", {age_seconds} s old" if item.signal is Signal.HELD and age_seconds else ""
    return (
        f"{item.metric} is {_number(item.total)}{age_text}, {_number(item.target)} per replica,"
        f" which asks for {item.replicas}{_silence(item)}"
    )


def _demand_texts(decision: ScalingDecision) -> Iterator[str]:
    """Yield the metric that asks for the most replicas, and the unknown ones."""
    if decision.current_replicas == 0 and decision.activity is Activity.SEEN:
        yield "requests arrive or wait before the replicas, which asks for 1"
    known = [item for item in decision.recommendations if item.replicas is not None]
    if known:
        yield recommendation_text(max(known, key=lambda item: item.needed or 0.0))
    yield from (recommendation_text(item) for item in decision.recommendations if item.replicas is None)


def _silence(item: Recommendation) -> str:
    if not item.silent_pods:
        return ""
    return f" ({item.silent_pods} of {item.pods + item.silent_pods} ready pods do not report it)"


def _number(value: float) -> str:
    return f"{value:.6g}"
