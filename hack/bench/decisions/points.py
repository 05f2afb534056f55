"""The simulation of one policy on one row with one seed, and its result."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Any

from controller.closedloop.named import simulate
from controller.closedloop.outcome import PolicyOutcome
from controller.closedloop.scenario import Scenario
from controller.simulation.request import Request
from hack.bench.decisions.rows import Row, rows

CLAIRVOYANT = "lower-bound"
_ROWS_KEPT = 3
_AVERAGED = (
    "cost", "missed", "missed_ttft", "missed_itl", "reversals_per_hour", "decided_reversals_per_hour"
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Point:
    """One simulation: a policy, a row and a seed."""

    row: str
    policy: str
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """The result of one point, or the mean over several seeds. Shares are from 0 to 1."""

    policy: str
    seeds: int
    cost: float
    missed: float
    missed_ttft: float
    missed_itl: float
    ttft_p99_seconds: float | None
    """The highest of all models; None if a model finished no request."""

    reversals_per_hour: float
    decided_reversals_per_hour: float
    by_priority: Mapping[int, float]
    """Missed share of the models of each priority."""

    note: str = ""
    seconds: float = 0.0
    """Wall-clock time of the simulation."""


def play(point: Point) -> Played:
    """Simulate a point; the requests of the last few rows and seeds are cached in the process."""
    row, began = rows()[point.row], time.monotonic()
    scenario = _scenario(row.name, point.seed)
    requests = _requests(row.name, point.seed)
    outcome = simulate(scenario, point.policy, requests=requests, cycle_settings=row.cycle_settings)
    return _played(row, outcome, seconds=time.monotonic() - began)


def mean(items: Sequence[Played]) -> Played:
    """Return the mean over seeds of one policy; the note is that of the first seed.

    `seeds` and `seconds` are sums.
    """
    first = items[0]
    known = [item.ttft_p99_seconds for item in items if item.ttft_p99_seconds is not None]
    shares = {priority: [item.by_priority[priority] for item in items] for priority in first.by_priority}
    averages: dict[str, Any] = {name: fmean(getattr(item, name) for item in items) for name in _AVERAGED}
    return replace(
        first,
        **averages,
        seeds=sum(item.seeds for item in items),
        ttft_p99_seconds=fmean(known) if len(known) == len(items) else None,
        by_priority={priority: fmean(each) for priority, each in shares.items()},
        seconds=sum(item.seconds for item in items),
    )


def _scenario(row: str, seed: int) -> Scenario:
    return replace(rows()[row].scenario, seed=seed)


@lru_cache(maxsize=_ROWS_KEPT)
def _requests(row: str, seed: int) -> Mapping[str, list[Request]]:
    return _scenario(row, seed).requests()


def _played(row: Row, outcome: PolicyOutcome, *, seconds: float) -> Played:
    slowest = [model.ttft_seconds.p99 for model in outcome.models]
    known = [found for found in slowest if found is not None]
    return Played(
        policy=outcome.policy,
        seeds=1,
        **{name: getattr(outcome, name) for name in _AVERAGED},
        ttft_p99_seconds=max(known) if known and len(known) == len(slowest) else None,
        by_priority={priority: _missed(row, outcome, priority) for priority in row.priorities},
        note=outcome.note,
        seconds=seconds,
    )


def _missed(row: Row, outcome: PolicyOutcome, priority: int) -> float:
    names = {model.model_id for model in row.scenario.models if model.priority == priority}
    models = [model for model in outcome.models if model.model_id in names]
    requests = sum(model.requests for model in models)
    return sum(model.missed * model.requests for model in models) / requests if requests else 0.0
