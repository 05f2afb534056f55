"""All compared engines by name. A process imports only the one that it measures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Final

from controller.planning.cpsat import Effort
from controller.planning.inputs import Settings
from controller.planning.problem import PlacementProblem, Solution
from hack.bench.compared import OURS

Engine = Callable[[PlacementProblem], Solution]

HIGHS: Final = "highs"
HIGHS_ROUGH: Final = "highs-0.1%"
STRATEGIES: Final = ("wva-greedy", "wva-cost-aware", "kthena-expansion")

COMPARED: Final = (OURS, *STRATEGIES, HIGHS)
"""The engines of the comparison; HiGHS with the larger gap is only used in the race."""

GAPS: Final = {HIGHS: 1e-6, HIGHS_ROUGH: 1e-3}
"""Relative gap to the bound at which HiGHS stops."""


def engine(name: str, *, seconds: float, is_race: bool = False) -> Engine:
    """Import an engine. `seconds` limits each solve: by the wall clock, or in CPU time for HiGHS in a race.

    The strategies ignore the limit.
    """
    if name in STRATEGIES:
        heuristic: Engine = importlib.import_module("hack.fleets.rivals").HEURISTICS[name].place
        return heuristic
    if name in GAPS:
        highs: Callable[..., Solution] = importlib.import_module("hack.bench.placement.highs").place
        return partial(highs, gap=GAPS[name], seconds=seconds, is_race=is_race)
    place: Callable[..., Solution] = importlib.import_module("controller.planning.engine").place
    return partial(place, effort=effort_within(seconds=seconds))


def effort_within(*, seconds: float) -> Effort:
    """Return the planner's default effort for our engine, with another wall-clock limit in seconds."""
    usual = Settings()
    return Effort(deterministic_seconds=usual.deterministic_seconds, wall_seconds=seconds, seed=usual.seed)


def pending_accelerators(name: str, problem: PlacementProblem) -> int | None:
    """Return the accelerators that a heuristic requests in vain; None for engines that assign nodes."""
    if name not in STRATEGIES:
        return None
    asked: int = importlib.import_module("hack.fleets.rivals").HEURISTICS[name].pending(problem)
    return asked
