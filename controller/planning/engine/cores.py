"""The cores of one level: smaller as the incumbent improves, larger as long as that helps."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.core import EXTRAS, Core, core_of
from controller.planning.engine.generation import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from controller.planning.cpsat import Result
    from controller.planning.engine.core import Selection
    from controller.planning.engine.generation import Generation
    from controller.planning.engine.incumbent import Incumbent
    from controller.planning.engine.master import Duals, Objective

FAR = 10.0
"""Factor on the accepted gap beyond which the largest core is solved."""


class Cores:
    """The cores of one level, one after the other."""

    def __init__(
        self,
        incumbent: Incumbent,
        generated: Generation,
        level: int,
        objective: Objective,
        duals: Duals,
        *,
        tolerance: float,
    ) -> None:
        """Start from a level's problem and its duals; `tolerance` is the accepted distance from the bound."""
        self._at = incumbent
        self._generated = generated
        self._level = level
        self._objective = objective
        self._duals = duals
        self._tolerance = tolerance
        self._turn = 0
        """Index of the next core's size."""
        self._may_fix_domains = True
        self._has_all = False
        """Whether the patterns contain all mixes that a better solution might use."""
        self._is_complete = False
        """Whether the last core contained all patterns that a better solution might use."""
        self._solved: NDArray[np.void] | None = None
        """The patterns of the last core."""
        self.bound = generated.bound
        """The lower bound of the level."""

    @property
    def _distance(self) -> float:
        """How far the incumbent is from the bound at the present prices."""
        return self._at.counted(self._objective) - self._generated.bound

    @property
    def _likely(self) -> tuple[int, ...]:
        """The replicas of each variant in the best patterns at the duals."""
        patterns = self._at.patterns
        return patterns.replicas(self._at.options, patterns.best(self._duals.reduced))

    def build(self) -> Core | None:
        """Return the next core, or None if the incumbent is good enough or no core promises a better one."""
        at, distance = self._at, self._distance
        enough = self._tolerance * (FAR if self._turn == len(EXTRAS) - 1 else 1.0)
        if self._turn == len(EXTRAS) or distance <= enough + ROUNDING:
            return None
        if self._solved is None:
            within = self._generated.within(self._level, self._duals, distance)
            self._objective, self._duals, self._has_all = within
        kept, holds_all = core_of(
            at.patterns,
            self._objective,
            self._duals,
            self._generated.always(),
            distance=distance,
            extra=EXTRAS[self._turn],
        )
        before, self._solved = self._solved, at.patterns.only(kept)
        if self._may_fix_domains and before is not None and np.array_equal(before, self._solved):
            if holds_all:
                return None  # nothing more is within the distance
            self._turn += 1
            return self.build()
        self._is_complete = holds_all and self._has_all
        return Core(
            at.problem,
            at.options,
            at.shared,
            at.patterns,
            self._objective,
            likely=self._likely if self._may_fix_domains else None,
            kept=kept,
        )

    def hint(self) -> Selection:
        """Return the incumbent, or if it is excluded, the best pattern of each model at the duals."""
        at = self._at
        if math.isfinite(at.counted(self._objective)):
            return at.selection
        return replace(at.selection, patterns=at.patterns.best(self._duals.reduced))

    def advance(self, core: Core, found: Selection | None, result: Result) -> None:
        """Keep a core's solution if it is better, and decide on the next core."""
        at, before = self._at, self._distance
        if found is not None:
            at.take(self._objective, found)
        if self._is_complete and core.is_exact and result.values:
            self._prove(result)
        if self._turn == len(EXTRAS):
            return
        is_better = self._distance < before
        if is_better and self._level < at.levels.cost and self._distance > self._tolerance + ROUNDING:
            filled = at.fill(self._level, self._duals.vector, at.selection.patterns)
            self._objective, self._duals = filled
        if core.fixes_domains and not is_better:
            self._may_fix_domains = False  # the fixed domains may be the obstacle
            return
        self._may_fix_domains = True
        if is_better and not result.is_optimal:
            return  # the next core of this size is smaller
        # A first core that was cut off says little. Without a solution at the minimum of easy levels, though,
        # a larger core is not likely to have one: another level is minimized first.
        was_cut_off = self._turn == 0 and not result.is_optimal and at.is_met
        self._turn = self._turn + 1 if is_better or was_cut_off else len(EXTRAS)

    def _prove(self, result: Result) -> None:
        """Raise the bound to that of a complete core."""
        counted = self._at.counted(self._objective)
        is_best = result.is_optimal and not self._tolerance
        self.bound = max(self.bound, counted if is_best else min(result.bound, counted))
        if result.is_optimal:
            self._turn = len(EXTRAS)
