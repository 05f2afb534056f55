"""The lexicographic minimum, level by level: duals bound each level, and cores of patterns solve it.

Levels that can all be at their minimum, according to their bounds, are settled together with the first one
that cannot: its duals tell which patterns also serve the easy levels best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.core import Core, core_of
from controller.planning.engine.counts import Counted, Counts
from controller.planning.engine.generation import ROUNDING, Generation
from controller.planning.engine.levels import proofs_of, whole_bound

if TYPE_CHECKING:
    from controller.planning.cpsat import Effort
    from controller.planning.engine.core import Selection
    from controller.planning.engine.incumbent import Incumbent
    from controller.planning.engine.master import Duals, Objective
    from controller.planning.engine.patterns import Patterns
    from controller.planning.engine.shared import Floats
    from controller.planning.problem import Proof
    from controller.planning.warm_start import DualPrices

GAP = 5e-4
"""Relative gap at which a solution is accepted, where levels are not settled by replica counts."""

LEAST_SHARE_OF_TOTAL = 0.1
"""The accepted gap is relative to at least this share of a level's total."""

SHARE_PER_LEVEL = 0.75
"""Share of the remaining effort that a level may use."""

LEAST_SECONDS = 0.1
"""Minimum wall time of each core, in seconds."""

LARGE = 50_000
"""Product of models and slot rows up to which the effort is as given; it grows in proportion beyond."""


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """The result of the search."""

    patterns: Patterns
    selection: Selection
    proofs: tuple[Proof, ...]
    prices: DualPrices
    option_prices: Floats
    """(options,): what each option pays at the prices of the cost level."""
    left: Effort
    """The remaining effort."""


class Search:
    """The state of the search: the incumbent, the generated patterns, and the remaining effort."""

    def __init__(
        self, incumbent: Incumbent, *, effort: Effort, known: DualPrices | None, most_counted: int
    ) -> None:
        """Start with an incumbent; up to `most_counted` models are settled by replica counts."""
        self._at = incumbent
        options, shared = incumbent.options, incumbent.shared
        self._effort = effort
        self._option_prices = np.zeros(len(options.count))
        size = len(options.members) * len(shared.slots)
        self._left_seconds = effort.deterministic_seconds * max(1.0, size / LARGE)
        self._deadline_seconds = monotonic() + effort.wall_seconds
        self._generated = Generation(self._at, known, self._deadline_seconds)
        self._is_counted = len(options.members) <= most_counted
        self._gap = 0.0 if self._is_counted else GAP

    def run(self) -> SearchResult:
        """Settle all levels, the easy ones together with the next hard one."""
        at = self._at
        bounds: list[int] = []
        while len(bounds) <= at.levels.cost:
            first = len(bounds)
            hard = self._first_hard(first)
            at.assume(range(first, hard))
            bound = self._settle(hard)
            if not at.is_met:
                # No solution at the minimum of all of them was found: minimize the first that is above it.
                hard = next(n for n in range(first, hard) if at.values[n] > at.least(n))
                at.assume(range(first, hard))
                bound = self._settle(hard)
            bounds += [*(at.least(level) for level in range(first, hard)), bound]
        return SearchResult(
            patterns=at.patterns,
            selection=at.selection,
            proofs=proofs_of(at.levels, at.values, bounds),
            prices=self._generated.prices.found(),
            option_prices=self._option_prices,
            left=self._left(self._left_seconds),
        )

    def _first_hard(self, first: int) -> int:
        """Return the first level that cannot be at its minimum with all earlier ones, according to bounds."""
        at = self._at
        for level in range(first, at.levels.cost + 1):
            at.assume(range(first, level))
            if not np.isfinite(at.patterns.least(at.objective(level).value)).all():
                return level - 1  # some model cannot be at its minimum at all of these levels
            least = at.least(level)
            if level == at.levels.cost or (at.is_met and at.values[level] <= least):
                continue
            self._generated.solve(level, least + 1.0)
            if self._generated.bound > least + ROUNDING * max(1.0, least):
                return level
        return at.levels.cost

    def _settle(self, level: int) -> int:
        """Minimize one level within the effort, and return its lower bound."""
        at = self._at
        value, least = at.values[level], at.least(level)
        if level < at.levels.cost and value <= least and at.is_met:
            return value
        unit, enough = at.levels.unit(level), math.inf
        if self._gap and at.is_met:
            enough = value * unit - self._tolerance(level, value * unit) / 4
        objective, duals = self._generated.solve(level, enough)
        if level == at.levels.cost:
            self._option_prices = duals.option_prices
        tolerance = self._tolerance(level, max(0.0, self._generated.bound))
        bound = self._improved(level, objective, duals, tolerance)
        return max(least, whole_bound((bound - at.levels.tie(level)) / unit))

    def _tolerance(self, level: int, counted: float) -> float:
        """Return the accepted distance from the bound, for a value of a level."""
        if level < self._at.levels.cost:
            counted = max(counted, self._at.levels.totals[level] * LEAST_SHARE_OF_TOTAL)
        return self._gap * counted

    def _improved(self, level: int, objective: Objective, duals: Duals, tolerance: float) -> float:
        """Improve the incumbent until it is within the tolerance or the effort is spent; return the bound."""
        at, bound = self._at, self._generated.bound
        if at.counted(objective) - bound > tolerance + ROUNDING:
            objective, duals = at.fill(level, duals.vector, at.patterns.best(duals.reduced))
        seconds = self._left_seconds * SHARE_PER_LEVEL
        if self._is_counted:
            return self._by_counts(level, seconds)
        if at.counted(objective) - bound > tolerance + ROUNDING and not self._is_over(seconds):
            bound = self._by_cores(level, objective, duals, tolerance=tolerance, seconds=seconds)
        return min(bound, at.counted(at.objective(level)))

    def _by_cores(
        self, level: int, objective: Objective, duals: Duals, *, tolerance: float, seconds: float
    ) -> float:
        """Solve a core, and return the bound of the level.

        If it fixes domains and does not improve the incumbent, a core that does not fix them follows.
        """
        at, bound = self._at, self._generated.bound
        before, is_better = at.counted(objective), False
        objective, duals, has_all = self._generated.within(level, duals, before - bound)
        always = self._generated.always()
        kept, holds_all = core_of(at.patterns, objective, duals, always, distance=before - bound)
        best = at.patterns.best(duals.reduced)
        # If the incumbent is excluded, the best pattern of each model is the hint.
        hint = at.selection if math.isfinite(before) else replace(at.selection, patterns=best)
        for likely in (at.patterns.replicas(at.options, best), None):
            core = Core(at.problem, at.options, at.shared, at.patterns, objective, likely=likely, kept=kept)
            effort = self._left(seconds)
            found, result = core.solve(hint, bound=self._generated.bound, gap=tolerance / 2, effort=effort)
            self._left_seconds -= result.deterministic_seconds
            seconds -= result.deterministic_seconds
            if found is not None:
                at.take(objective, found)
            if has_all and holds_all and core.is_exact and result.values:
                bound = max(bound, min(result.bound, at.counted(objective)))
            is_better = at.counted(objective) < before
            if is_better or not core.fixes_domains or self._is_over(seconds):
                break
        if is_better and level < at.levels.cost:
            # The core may lack the patterns of a model for which there is room.
            at.fill(level, duals.vector, at.selection.patterns)
        return bound

    def _is_over(self, seconds: float) -> bool:
        """Return whether no effort is left, of a given amount, or no wall time."""
        return seconds <= 0 or monotonic() >= self._deadline_seconds

    def _by_counts(self, level: int, seconds: float) -> float:
        """Solve the program over replica counts, and return the lower bound."""
        at, bound = self._at, self._generated.bound
        counted = at.counted(at.objective(level))
        if counted - bound <= ROUNDING or seconds <= 0:
            return min(bound, counted)
        caps = {
            at.options.levels[n]: at.least(n) if n in at.standing.easy else at.standing.values[n]
            for n in range(level)
        }
        counts = Counts(at.problem, at.options, at.shared, caps)
        if level < at.levels.cost:
            terms = counts.level(at.options.levels[level])
        else:
            terms = counts.cost(at.levels.unit(level))
        held = at.patterns.replicas(at.options, at.selection.patterns)
        begin = Counted(replicas=held, added=at.selection.added)
        found, result = counts.minimize(terms, begin, bound=bound, effort=self._left(seconds))
        self._left_seconds -= result.deterministic_seconds
        if found is None:
            return bound
        counted = at.counted(at.offer(level, found.replicas, found.added))
        return max(bound, counted if result.is_optimal else min(result.bound, counted))

    def _left(self, deterministic_seconds: float) -> Effort:
        """Return some effort, within the remaining wall time."""
        return replace(
            self._effort,
            deterministic_seconds=max(0.0, deterministic_seconds),
            wall_seconds=max(LEAST_SECONDS, self._deadline_seconds - monotonic()),
        )
