"""The cores of one level: solved again as long as that improves an incumbent within the effort."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.core import Core, core_of
from controller.planning.engine.generation import ROUNDING

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from controller.planning.cpsat import Result
    from controller.planning.engine.core import Selection
    from controller.planning.engine.generation import Generation
    from controller.planning.engine.incumbent import Incumbent
    from controller.planning.engine.master import Duals, Objective


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
        self._is_done = False
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
        if self._is_done or distance <= self._tolerance + ROUNDING:
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
        )
        before, self._solved = self._solved, at.patterns.only(kept)
        if self._may_fix_domains and before is not None and np.array_equal(before, self._solved):
            return None
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
        if self._is_done:
            return
        is_better = self._distance < before
        if is_better and self._level < at.levels.cost and self._distance > self._tolerance + ROUNDING:
            filled = at.fill(self._level, self._duals.vector, at.selection.patterns)
            self._objective, self._duals = filled
        if core.fixes_domains and not is_better:
            self._may_fix_domains = False  # the fixed domains may be the obstacle
            return
        self._may_fix_domains = True
        # After a core that was cut off and improved the incumbent, the next one is smaller.
        self._is_done = result.is_optimal or not is_better

    def _prove(self, result: Result) -> None:
        """Raise the bound to that of a complete core."""
        counted = self._at.counted(self._objective)
        is_best = result.is_optimal and not self._tolerance
        self.bound = max(self.bound, counted if is_best else min(result.bound, counted))
        self._is_done = self._is_done or result.is_optimal
