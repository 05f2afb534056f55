"""Every way of placing that is compared, by name. A process loads the one that it measures and no other."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Final

from controller.planning.cpsat import Limits
from controller.planning.problem import PlacementProblem, Solution
from controller.planning.settings import Settings
from hack.bench.compared import OURS

Engine = Callable[[PlacementProblem], Solution]

HIGHS: Final = "highs"
HIGHS_ROUGH: Final = "highs-0.1%"
STRATEGIES: Final = ("wva-greedy", "wva-cost-aware", "kthena-expansion")

COMPARED: Final = (OURS, *STRATEGIES, HIGHS)
"""HiGHS with a rough gap only races."""

GAPS: Final = {HIGHS: 1e-6, HIGHS_ROUGH: 1e-3}
"""Relative distance to the bound at which HiGHS stops."""


def engine(name: str, *, seconds: float, is_race: bool = False) -> Engine:
    """Load an engine; it may take so many seconds by the clock for each problem."""
    if name in STRATEGIES:
        strategy: Engine = importlib.import_module("hack.fleets.rivals").RULES[name].place
        return strategy
    if name in GAPS:
        highs: Callable[..., Solution] = importlib.import_module("hack.bench.placement.highs").place
        return partial(highs, gap=GAPS[name], seconds=seconds, is_race=is_race)
    place: Callable[..., Solution] = importlib.import_module("controller.planning.engine").place
    return partial(place, limits=limits(seconds=seconds))


def limits(*, seconds: float) -> Limits:
    """Return the effort that a planner allows ours, within so many seconds by the clock."""
    usual = Settings()
    return Limits(deterministic_seconds=usual.deterministic_seconds, wall_seconds=seconds, seed=usual.seed)


def pending_accelerators(name: str, problem: PlacementProblem) -> int | None:
    """Return how many accelerators a strategy's counts ask for in vain; None where only plans are made."""
    if name not in STRATEGIES:
        return None
    asked: int = importlib.import_module("hack.fleets.rivals").RULES[name].pending(problem)
    return asked
