"""Compute the outcome of a run from its completions and points."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING

from controller.closedloop.outcome import ModelOutcome, PolicyOutcome, Quantiles, VariantOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from controller.closedloop.outcome import Point
    from controller.closedloop.policy import Policy
    from controller.closedloop.scenario import Model, Scenario, VariantSetup
    from controller.simulation.request import Completion, Request


def quantile(ordered: Sequence[float], share: float) -> float | None:
    """Return the smallest of the sorted values that this share does not exceed; None without values."""
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)] if ordered else None


def score(
    scenario: Scenario,
    policy: Policy,
    *,
    requests: Mapping[str, Sequence[Request]],
    finished: Mapping[str, Sequence[Completion]],
    abandoned: Mapping[str, Sequence[Request]],
    points: Sequence[Point],
    replica_seconds: Mapping[str, float],
) -> PolicyOutcome:
    """Return the outcome of a run; requests that arrived in the warm-up are not counted."""
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

    told = (replace(item, seconds=item.seconds - scenario.warm_up_seconds) for item in policy.told)
    return PolicyOutcome(
        scenario=scenario.name,
        policy=policy.name,
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
        told=tuple(told),
    )


def _later(requests: Sequence[Request], since_us: int) -> int:
    return sum(request.arrival_us >= since_us for request in requests)


def model_outcome(
    model: Model, count: int, finished: Iterable[Completion], *, abandoned: int = 0, since_us: int = 0
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
