"""All compared engines by name. A process imports only the one that it measures."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Final

from controller.planning.cpsat import Effort
from controller.planning.inputs import Settings
from controller.planning.problem import PlacementProblem, Solution
from hack.bench.run import OURS

Engine = Callable[[PlacementProblem], Solution]

HIGHS: Final = "highs"
STRATEGIES: Final = ("wva-greedy", "wva-cost-aware", "kthena-expansion")

COMPARED: Final = (OURS, *STRATEGIES, HIGHS)


def engine(name: str, *, seconds: float) -> Engine:
    """Import an engine. `seconds` of wall-clock time limit each solve; the strategies ignore the limit."""
    if name in STRATEGIES:
        heuristic: Engine = importlib.import_module("hack.fleets.rivals").HEURISTICS[name].place
        return heuristic
    if name == HIGHS:
        highs: Callable[..., Solution] = importlib.import_module("hack.bench.placement.highs").place
        return partial(highs, seconds=seconds)
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
    pending: int = importlib.import_module("hack.fleets.rivals").HEURISTICS[name].pending(problem)
    return pending
