"""Every way of placing that is compared, by name. A process loads the one that it measures and no other."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable
from functools import partial
from typing import Final

from controller.planning.lexicographic import Limits
from controller.planning.problem import PlacementProblem, Solution
from controller.planning.settings import Settings
from hack.bench.compared import OURS

Engine = Callable[[PlacementProblem], Solution]

TEXTBOOK: Final = "textbook"
HIGHS: Final = "highs"
HIGHS_ROUGH: Final = "highs-0.1%"
STRATEGIES: Final = ("wva-greedy", "wva-cost-aware", "kthena-expansion")

_MODULES: Final = {OURS: "controller.planning.columns", TEXTBOOK: "controller.planning.textbook"}
GAPS: Final = {HIGHS: 1e-6, HIGHS_ROUGH: 1e-3}
"""Relative distance to the bound at which HiGHS stops."""

_MANY_DETERMINISTIC_SECONDS: Final = 30.0


def names() -> list[str]:
    """Return every engine that is there to be compared; HiGHS with a rough gap only races."""
    return [*filter(is_available, _MODULES), *STRATEGIES, HIGHS]


def is_available(name: str) -> bool:
    """Tell whether the engine's module exists."""
    return importlib.util.find_spec(_MODULES[name]) is not None


def engine(name: str, *, seconds: float, is_race: bool = False) -> Engine:
    """Load an engine; it may take so many seconds by the clock for each problem."""
    if name in STRATEGIES:
        strategy: Engine = importlib.import_module("hack.bench.placement.rivals").STRATEGIES[name]
        return strategy
    if name in GAPS:
        highs: Callable[..., Solution] = importlib.import_module("hack.bench.placement.highs").place
        return partial(highs, gap=GAPS[name], seconds=seconds, is_race=is_race)
    place: Callable[..., Solution] = importlib.import_module(_MODULES[name]).place
    effort = limits(name, seconds=seconds)
    if name == OURS:
        return partial(place, limits=effort, certifies=Settings().certificate)
    return partial(place, limits=effort)


def limits(name: str, *, seconds: float) -> Limits:
    """Return the effort: what a planner allows, and for the textbook model as much as it may need."""
    usual = Settings()
    effort = usual.deterministic_seconds if name == OURS else _MANY_DETERMINISTIC_SECONDS
    return Limits(deterministic_seconds=effort, wall_seconds=seconds, seed=usual.seed)


def pending_accelerators(name: str, problem: PlacementProblem) -> int | None:
    """Return how many accelerators a strategy's counts ask for in vain; None where only plans are made."""
    if name not in STRATEGIES:
        return None
    count: Callable[[PlacementProblem], int] = importlib.import_module("hack.bench.placement.rivals").PENDING[
        name
    ]
    return count(problem)
