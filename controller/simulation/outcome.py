"""The outcome of a run: what is recorded, and how it is scored.

Requests count by the time of their arrival: those of the warm-up do not count, wherever they end. A request
is missed if it exceeded a target, or never got all of its tokens, for whatever reason. Shares over several
models are those of all of their requests together. Cost is that of all replicas for the time for which they
were held.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from controller.simulation.batch import CompletedRequest
from controller.simulation.scenario import Scenario, ScenarioModel, VariantSetup
from controller.simulation.workload import Request


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyDecision:
    """A decision with its explanation."""

    seconds: float
    variant: str
    replicas: int
    current_replicas: int
    """Replicas at the time of the decision."""

    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingPoint:
    """One decision. `values` are totals over all pods; None while unknown.

    `recommended` is what the metrics ask for, without any limit; None while no metric is known. `replicas` is
    the decided number, and `targets` are the replicas of each target in it.
    """

    seconds: float
    values: Mapping[str, float | None]
    recommended: int | None
    replicas: int
    current_replicas: int
    targets: tuple[int, ...]
    in_panic: bool
    limits: tuple[str, ...]
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class BindingCourse:
    """All decisions for the targets of one binding, one per interval."""

    targets: tuple[str, ...]
    points: tuple[BindingPoint, ...]
    is_alike: bool = True
    """Whether all replicas have capacity 1, so that recommended and decided replicas are the same ones."""

    unreported: tuple[str, ...] = ()
    """Metrics of the policy that no simulated engine ever reported; empty if none was asked."""

    @property
    def changes(self) -> tuple[BindingPoint, ...]:
        """The decisions that changed the number of replicas."""
        return tuple(point for point in self.points if point.replicas != point.current_replicas)


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantiles:
    """Quantiles over requests, in seconds; None if none finished."""

    p50: float | None = None
    p90: float | None = None
    p99: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelOutcome:
    """The outcome for the requests of one model; shares are of its requests, 0 to 1.

    A request is missed if it exceeded a target or never finished; one that exceeded both targets counts in
    both shares. Those whose clients gave up are abandoned, and among those that never finished.
    """

    model_id: str
    requests: int
    missed: float
    missed_ttft: float
    missed_itl: float
    never_finished: float
    abandoned: float
    ttft_seconds: Quantiles
    itl_seconds: Quantiles


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantOutcome:
    """The outcome for one variant. A reversal is a change of direction of its requested replicas.

    Decided reversals are those of the replicas its metric alone asks for, whether or not the autoscaler
    followed.
    """

    name: str
    model_id: str
    cost: float
    replica_hours: float
    reversals_per_hour: float = 0.0
    decided_reversals_per_hour: float = 0.0
    peak_replicas: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelPoint:
    """One model at one time, and over the interval before it; latencies are None if nothing finished."""

    model_id: str
    arrivals_per_second: float
    ttft_p90_seconds: float | None
    itl_p90_seconds: float | None


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantPoint:
    """One variant at one time: its published metric, and its requested, ready and starting replicas.

    `wanted` are the replicas that the metric alone asks for, without the autoscaler's rules.
    """

    name: str
    published: float | None
    wanted: float | None
    spec: int
    ready: int
    starting: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One point in time, in seconds since scoring began: negative in the warm-up. Cost is per hour."""

    seconds: float
    cost_rate: float
    models: tuple[ModelPoint, ...]
    variants: tuple[VariantPoint, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PolicyOutcome:
    """One scenario under one policy; `missed` is over the requests of all models together."""

    scenario: str
    policy: str
    cost: float
    requests: int
    missed: float
    missed_ttft: float = 0.0
    missed_itl: float = 0.0
    never_finished: float = 0.0
    abandoned: float = 0.0
    models: tuple[ModelOutcome, ...] = ()
    variants: tuple[VariantOutcome, ...] = ()
    points: tuple[Point, ...] = ()
    decisions: tuple[PolicyDecision, ...] = ()
    decided: tuple[BindingCourse, ...] = ()
    """The decisions of an AutoscalingPolicy for each of its bindings; empty for other policies."""

    note: str = ""
    """Additional information, such as the result of a search."""

    @property
    def reversals_per_hour(self) -> float:
        """Reversals of all variants together."""
        return sum(variant.reversals_per_hour for variant in self.variants)

    @property
    def decided_reversals_per_hour(self) -> float:
        """Decided reversals of all variants together."""
        return sum(variant.decided_reversals_per_hour for variant in self.variants)


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest of the sorted values that this share does not exceed; None without values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def score(
    scenario: Scenario,
    *,
    policy: str,
    decisions: Sequence[PolicyDecision],
    requests: Mapping[str, Sequence[Request]],
    finished: Mapping[str, Sequence[CompletedRequest]],
    abandoned: Mapping[str, Sequence[Request]],
    points: Sequence[Point],
    replica_seconds: Mapping[str, float],
) -> PolicyOutcome:
    """Return the outcome of a run; requests that arrived in the warm-up are not counted.

    `decisions` are the decisions of the policy, in seconds since the run began.
    """
    since_us = round(scenario.warm_up_seconds * 1e6)
    models = tuple(
        model_outcome(
            model,
            _later(requests[model.model_id], since_us),
            finished[model.model_id],
            abandoned=_later(abandoned[model.model_id], since_us),
            since_us=since_us,
        )
        for model in scenario.models
    )
    variants = tuple(
        _variant(item, scenario, points, replica_seconds[item.name]) for item in scenario.variants
    )
    count = sum(model.requests for model in models)

    def share(name: str) -> float:
        return sum(getattr(model, name) * model.requests for model in models) / count if count else 0.0

    return PolicyOutcome(
        scenario=scenario.name,
        policy=policy,
        cost=sum(variant.cost for variant in variants),
        requests=count,
        missed=share("missed"),
        missed_ttft=share("missed_ttft"),
        missed_itl=share("missed_itl"),
        never_finished=share("never_finished"),
        abandoned=share("abandoned"),
        models=models,
        variants=variants,
        points=tuple(points),
        decisions=tuple(replace(item, seconds=item.seconds - scenario.warm_up_seconds) for item in decisions),
    )


def _later(requests: Sequence[Request], since_us: int) -> int:
    return sum(request.arrival_us >= since_us for request in requests)


def model_outcome(
    model: ScenarioModel,
    count: int,
    finished: Iterable[CompletedRequest],
    *,
    abandoned: int = 0,
    since_us: int = 0,
) -> ModelOutcome:
    """Return the outcome of the `count` requests that arrived since then; unfinished ones are missed.

    `abandoned` is the number of those whose clients gave up.
    """
    done = [item for item in finished if item.request.arrival_us >= since_us]
    ttft = [item.time_to_first_token_seconds for item in done]
    itl = [item.inter_token_latency_seconds for item in done]
    most_ttft = math.inf if model.targets.ttft_seconds is None else model.targets.ttft_seconds
    most_itl = math.inf if model.targets.itl_seconds is None else model.targets.itl_seconds
    late = sum(value > most_ttft for value in ttft)
    slow = sum(value > most_itl for value in itl)
    missed = sum(a > most_ttft or b > most_itl for a, b in zip(ttft, itl, strict=True))
    lost, all_of_them = count - len(done), max(1, count)
    # A single token has no gap to a next one.
    gaps = sorted(b for item, b in zip(done, itl, strict=True) if item.request.output_tokens > 1)
    return ModelOutcome(
        model_id=model.model_id,
        requests=count,
        missed=(missed + lost) / all_of_them,
        missed_ttft=late / all_of_them,
        missed_itl=slow / all_of_them,
        never_finished=lost / all_of_them,
        abandoned=abandoned / all_of_them,
        ttft_seconds=_quantiles(sorted(ttft)),
        itl_seconds=_quantiles(gaps),
    )


def _quantiles(ordered: Sequence[float]) -> Quantiles:
    return Quantiles(p50=quantile(ordered, 0.5), p90=quantile(ordered, 0.9), p99=quantile(ordered, 0.99))


def _variant(
    variant: VariantSetup, scenario: Scenario, points: Sequence[Point], replica_seconds: float
) -> VariantOutcome:
    course = [
        seen for point in points if point.seconds >= 0 for seen in point.variants if seen.name == variant.name
    ]
    hours = replica_seconds / 3600
    scored_hours = scenario.duration_seconds / 3600
    decided = [math.ceil(seen.wanted) for seen in course if seen.wanted is not None]
    return VariantOutcome(
        name=variant.name,
        model_id=variant.model_id,
        cost=hours * variant.price_per_hour,
        replica_hours=hours,
        reversals_per_hour=reversals([seen.spec for seen in course]) / scored_hours,
        decided_reversals_per_hour=reversals(decided) / scored_hours,
        peak_replicas=max((seen.spec for seen in course), default=0),
    )


def reversals(course: Sequence[int]) -> int:
    """Return how often a series changes its direction."""
    signs = [after > before for before, after in pairwise(course) if after != before]
    return sum(a != b for a, b in pairwise(signs))
