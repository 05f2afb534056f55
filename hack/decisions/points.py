"""The simulation of one policy on one row with one seed, and its result."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from statistics import fmean
from typing import Any, Final

from controller.simulation import run
from controller.simulation.outcome import PolicyOutcome
from controller.simulation.scenario import Scenario
from controller.simulation.workload import Request
from controller.variants.solver_worker import without_collection
from hack.decisions.rows import Row, rows
from hack.decisions.saturation import RULES

_AVERAGED: Final = (
    "cost", "missed", "missed_ttft", "missed_itl", "reversals_per_hour", "decided_reversals_per_hour"
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class SimulationPoint:
    """One simulation: a policy, a row and a seed."""

    row: str
    policy: str
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class PointResult:
    """The result of one point, or the mean over several seeds. Shares are from 0 to 1."""

    policy: str
    cost: float
    missed: float
    missed_ttft: float
    missed_itl: float
    reversals_per_hour: float
    decided_reversals_per_hour: float
    by_priority: Mapping[int, float]
    """Missed share of the models of each priority; empty for the lower bound."""

    seconds: float = 0.0
    """Wall-clock time of the simulation."""


def play(point: SimulationPoint) -> PointResult:
    """Simulate a point; the requests of the last row and seed are cached in the process."""
    row, began = rows()[point.row], time.monotonic()
    scenario, requests = _scenario(row.name, point.seed), requests_of(row.name, point.seed)
    if rule := RULES.get(point.policy):
        assert not any(variant.profile.role for variant in scenario.variants), "the rules know no roles"
        with run.silent(), without_collection():
            outcome = asyncio.run(run.play(scenario, rule(scenario=scenario), requests=requests))
    else:
        settings = row.cycle_settings
        outcome = run.simulate(scenario, point.policy, requests=requests, cycle_settings=settings)
    averages = {name: round(getattr(outcome, name), 6) for name in _AVERAGED}
    shares = {
        priority: _missed_share(row, outcome, priority) for priority in row.priorities if outcome.models
    }
    seconds = round(time.monotonic() - began, 1)
    return PointResult(policy=outcome.policy, **averages, by_priority=shares, seconds=seconds)


def mean(items: Sequence[PointResult]) -> PointResult:
    """Return the mean over seeds of one policy; `seconds` is the sum."""
    averages: dict[str, Any] = {name: fmean(getattr(item, name) for item in items) for name in _AVERAGED}
    shares = {key: fmean(item.by_priority[key] for item in items) for key in items[0].by_priority}
    return replace(items[0], **averages, by_priority=shares, seconds=sum(item.seconds for item in items))


def _scenario(row: str, seed: int) -> Scenario:
    return replace(rows()[row].scenario, seed=seed)


@lru_cache(maxsize=1)
def requests_of(row: str, seed: int) -> Mapping[str, list[Request]]:
    """Return the requests of a row."""
    return _scenario(row, seed).requests()


def _missed_share(row: Row, outcome: PolicyOutcome, priority: int) -> float:
    names = {model.model_id for model in row.scenario.models if model.priority == priority}
    models = [model for model in outcome.models if model.model_id in names]
    requests = sum(model.requests for model in models)
    return round(sum(model.missed * model.requests for model in models) / max(1, requests), 6)
