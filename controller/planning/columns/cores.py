"""Cores of one problem, solved within the effort that is left."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.columns.core import CoreProgram, core_of
from controller.planning.columns.room import Room

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.effort import Effort
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Selection

FIRST_EXTRA = 0.25
"""How many columns the first core has beyond one per model, in columns per model."""

GROWTH = 3
"""How many times more of them each further core has."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Solved:
    """What a core came to."""

    found: Selection | None
    bound: float
    """No answer of the core counts for less; minus infinity where there is none."""

    is_optimal: bool
    """Whether nothing in the core is better by more than the gap."""

    is_complete: bool
    """Whether no better answer lies beyond the core."""

    is_worth_growing: bool
    """Whether a larger one would be searched to any use: later levels need their share."""


class Cores:
    """Solves growing cores, and spends effort on it."""

    def __init__(self, resources: Resources, asking: Asking, effort: Effort) -> None:
        self._resources = resources
        self._asking = asking
        self._effort = effort

    def solved(
        self,
        pools: Sequence[Pool],
        problem: Phase,
        best: Selection,
        *,
        reduced: Sequence[Floats],
        ties: Sequence[Floats],
        bin_price: Floats,
        distance: float,
        bound: float,
        gap: float,
        turn: int = 0,
    ) -> Solved:
        """Return what the core of some turn comes to, the first being 0, to within a gap of its bound.

        `reduced` and `ties` are per pool (n, j), as in `core_of`; `bin_price` (classes, bins) says where new
        replicas go first; `distance` is that of the best answer from what the prices prove, and `bound` what
        no answer counts less than.
        """
        extra = math.ceil(FIRST_EXTRA * sum(len(pool.cost) for pool in pools)) * GROWTH**turn
        core = core_of(problem, reduced, ties, best, distance=distance, extra=extra, most=GROWTH * extra)
        program = CoreProgram(pools, self._resources, self._asking, problem, core)
        placed = self._placed(pools, best, bin_price)
        found, result = program.solve(best, placed=placed, bound=bound, gap=gap, limits=self._effort.share)
        self._effort.spend(result)
        left = self._effort.share.deterministic_seconds
        return Solved(
            found=found,
            bound=result.bound if result.values else -math.inf,
            is_optimal=result.is_optimal,
            is_complete=core.is_complete,
            is_worth_growing=result.deterministic_seconds * GROWTH <= left,
        )

    def _placed(self, pools: Sequence[Pool], best: Selection, bin_price: Floats) -> Integers | None:
        """Return where the new replicas of an answer may go, (classes, bins); None where that is not easy."""
        if best.placed is not None:
            return best.placed
        room = Room(resources=self._resources, bin_price=bin_price)
        asked = self._asking.of_all(pools, best.columns)
        return room.placed if room.exchange(self._asking.nothing(pools), asked) else None
