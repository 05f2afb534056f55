"""The lexicographic minimum, level by level: duals bound each level, and cores of patterns solve it.

Levels that can all be at their minimum, according to their bounds, are settled together with the first one
that cannot: its duals tell which patterns also serve the easy levels best. At each level, the restricted
master and exact pricing take turns until their bounds agree (column generation, Dantzig and Wolfe 1960).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic

import numpy as np

from controller.planning.cpsat import Effort, Result
from controller.planning.engine.core import EXTRA, Core, core_of
from controller.planning.engine.counts import Counts
from controller.planning.engine.levels import Incumbent, proofs_of, whole_bound
from controller.planning.engine.master import Duals, PatternObjective
from controller.planning.engine.patterns import around
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.shared import Booleans, Floats, Integers
from controller.planning.problem import Proof, RowName, Solution

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


PRICINGS = 4
"""The maximum number of pricing rounds over all mixes per level."""

PRICED = 24
"""Mixes of each model that pricing adds at once."""

NEGLIGIBLE = 1e-4
"""Relative gap between the bounds over patterns and over all mixes at which pricing stops."""

UNKNOWN = 1e-3
"""Distance in which mixes are priced, relative to the bound, while no solution is known."""

ROUNDING = 1e-6
"""Differences of integers below this are rounding errors."""


class Generation:
    """The patterns, bounds and prices that column generation found, level by level."""

    def __init__(self, incumbent: Incumbent, deadline_seconds: float) -> None:
        """Start without prices; the deadline is on the monotonic clock."""
        self._incumbent = incumbent
        self._deadline_seconds = deadline_seconds
        self.bound = -math.inf
        """Bound of the last level over all mixes."""
        self.prices: dict[str, Mapping[RowName, float]] = {}
        """Level -> shared row -> final price, per unit of the level's value."""
        self._linear = around(incumbent.options, {})
        """Mixes of the last LP solution, and around it."""

    def solve(self, level: int, enough: float) -> tuple[PatternObjective, Duals]:
        """Return a level's problem with the best duals over all mixes, or any that prove `enough`.

        The patterns that these duals price out are added.
        """
        incumbent = self._incumbent
        name, factor = incumbent.levels.name(level), incumbent.levels.factor(level)
        duals = self._restricted_duals(level, None, enough)
        self.bound, _ = self._price(level, duals)
        for _ in range(PRICINGS - 1):
            if duals.bound - self.bound <= NEGLIGIBLE * abs(duals.bound) + ROUNDING:
                break
            after = self._restricted_duals(level, duals.vector, enough)
            if abs(after.bound - duals.bound) <= ROUNDING:
                break  # the priced patterns change nothing; the bound belongs to the earlier duals
            duals = after
            self.bound, _ = self._price(level, duals)
        prices = (duals.vector / factor).tolist()
        self.prices[name] = dict(zip(incumbent.shared.row_names, prices, strict=False))  # kept levels follow
        self._linear = around(incumbent.options, duals.means)
        if duals.support is not None:
            models, mixes = zip(self._linear, duals.support, strict=True)
            self._linear = np.concatenate(models), np.concatenate(mixes)
        incumbent.extend(*self._linear)
        objective = incumbent.objective(level)
        return objective, incumbent.master(objective).duals(duals.vector)

    def within(self, level: int, duals: Duals, distance: float) -> tuple[PatternObjective, Duals, bool]:
        """Return the problem with all mixes that a better solution might use, and whether it has them all."""
        incumbent = self._incumbent
        priced = distance if math.isfinite(distance) else UNKNOWN * max(1.0, abs(duals.bound))
        bound, has_all = self._price(level, duals, priced)
        # The distance is that from `self.bound`, which these prices must prove as well.
        has_all = has_all and priced >= distance and bound >= self.bound - ROUNDING
        objective = incumbent.objective(level)
        return objective, incumbent.master(objective).duals(duals.vector), has_all

    def always(self) -> Integers:
        """Return the patterns in every core: those of the incumbent and of the LP solution and around it."""
        return np.union1d(self._incumbent.selection.patterns, self._incumbent.patterns.numbers(*self._linear))

    def _restricted_duals(self, level: int, begin: Floats | None, enough: float) -> Duals:
        """Return the best duals over the patterns, from some initial prices, or any that prove `enough`."""
        master = self._incumbent.master(self._incumbent.objective(level))
        return master.solve(begin, enough=enough, deadline_seconds=self._deadline_seconds)

    def _price(self, level: int, duals: Duals, distance: float = 0.0) -> tuple[float, bool]:
        """Price all mixes, and add those close to their model's best.

        Returns the bound over all mixes, and whether all mixes within `distance` of the best are present now.
        """
        incumbent = self._incumbent
        if level < incumbent.levels.cost and not distance and duals.bound <= incumbent.least(level):
            return duals.bound, True  # no mix has a smaller shortfall
        option_values, stages = incumbent.prices(level, duals)
        least = incumbent.patterns.least(duals.reduced)
        prices = Prices(
            options=option_values + duals.option_prices, stages=stages, least=incumbent.patterns.least_short
        )
        # Within a distance, as many as fit into a core.
        most = max(PRICED, EXTRA // len(least)) if distance else PRICED
        priced = price(incumbent.options, prices, least + distance, most=most)
        incumbent.extend(priced.model, priced.options)
        bound = duals.bound - float((least - np.minimum(priced.bound, least)).sum())
        return bound, bool((priced.reaches >= np.minimum(priced.bound, least) + distance).all())


class Search:
    """The state of the search: the incumbent, the generated patterns, and the remaining effort."""

    def __init__(
        self,
        incumbent: Incumbent,
        *,
        effort: Effort,
        is_counted: bool,
        counted_gap: float,
    ) -> None:
        """Start with an incumbent.

        Levels are settled by replica counts if `is_counted`, and otherwise by cores, with counts after those
        that leave a gap of more than `counted_gap`, measured as `GAP`.
        """
        self._incumbent = incumbent
        options, shared = incumbent.options, incumbent.shared
        self._effort = effort
        size = len(options.members) * len(shared.slots)
        self._left_seconds = effort.deterministic_seconds * max(1.0, size / LARGE)
        self._deadline_seconds = monotonic() + effort.wall_seconds
        self._generated = Generation(self._incumbent, self._deadline_seconds)
        self._is_counted, self._counted_gap = is_counted, counted_gap
        self._gap = 0.0 if is_counted else GAP

    @property
    def prices(self) -> Mapping[str, Mapping[RowName, float]]:
        """The final dual prices of shared rows, by level."""
        return self._generated.prices

    @property
    def remaining_effort(self) -> Effort:
        """The remaining effort."""
        return self._limit_effort(self._left_seconds)

    def run(self) -> tuple[Proof, ...]:
        """Settle all levels, the easy ones together with the next hard one, and return their proofs."""
        incumbent = self._incumbent
        bounds: list[int] = []
        while len(bounds) <= incumbent.levels.cost:
            first = len(bounds)
            hard = self._first_hard(first)
            incumbent.assume(range(first, hard))
            bound = self._settle(hard)
            if not incumbent.is_met:
                # No solution at the minimum of all of them was found: minimize the first that is above it.
                hard = next(n for n in range(first, hard) if incumbent.values[n] > incumbent.least(n))
                incumbent.assume(range(first, hard))
                bound = self._settle(hard)
            bounds += [*(incumbent.least(level) for level in range(first, hard)), bound]
        return proofs_of(incumbent.levels, incumbent.values, bounds)

    def _first_hard(self, first: int) -> int:
        """Return the first level that cannot be at its minimum with all earlier ones, according to bounds."""
        incumbent = self._incumbent
        for level in range(first, incumbent.levels.cost + 1):
            incumbent.assume(range(first, level))
            if not np.isfinite(incumbent.patterns.least(incumbent.objective(level).value)).all():
                return level - 1  # some model cannot be at its minimum at all of these levels
            least = incumbent.least(level)
            if level == incumbent.levels.cost or (incumbent.is_met and incumbent.values[level] <= least):
                continue
            self._generated.solve(level, least + 1.0)
            if self._generated.bound > least + ROUNDING * max(1.0, least):
                return level
        return incumbent.levels.cost

    def _settle(self, level: int) -> int:
        """Minimize one level within the effort, and return its lower bound."""
        incumbent = self._incumbent
        value, least = incumbent.values[level], incumbent.least(level)
        if level < incumbent.levels.cost and value <= least and incumbent.is_met:
            return value
        factor, enough = incumbent.levels.factor(level), math.inf
        if self._gap and incumbent.is_met:
            # Better prices are not needed within a quarter of the accepted gap. The rest is for the patterns
            # of the core, which seldom reach the bound.
            enough = value * factor - self._gap * self._base(level, value * factor) / 4
        objective, duals = self._generated.solve(level, enough)
        bound = self._improve(level, objective, duals, self._base(level, max(0.0, self._generated.bound)))
        return max(least, whole_bound((bound - incumbent.levels.tie(level)) / factor))

    def _base(self, level: int, value: float) -> float:
        """Return the amount that a gap is relative to, for a value of a level."""
        if level < self._incumbent.levels.cost:
            return max(value, self._incumbent.levels.totals[level] * LEAST_SHARE_OF_TOTAL)
        return value

    def _improve(self, level: int, objective: PatternObjective, duals: Duals, base: float) -> float:
        """Improve the incumbent until it is within the gap or the effort is spent; return the bound."""
        incumbent, bound, tolerance = self._incumbent, self._generated.bound, self._gap * base
        if incumbent.objective_value(objective) - bound > tolerance + ROUNDING:
            objective, duals = incumbent.fill(level, duals.vector, incumbent.patterns.best(duals.reduced))
        seconds = self._left_seconds * SHARE_PER_LEVEL
        if self._is_counted:
            return self._by_counts(level, seconds)
        if incumbent.objective_value(objective) - bound > tolerance + ROUNDING and not self._is_over(seconds):
            until = self._left_seconds - seconds
            bound = self._by_patterns(level, objective, duals, gap=tolerance / 2, seconds=seconds)
            distance = incumbent.objective_value(incumbent.objective(level)) - bound
            if distance > self._counted_gap * base + ROUNDING:
                bound = max(bound, self._by_counts(level, self._left_seconds - until))
        return min(bound, incumbent.objective_value(incumbent.objective(level)))

    def _by_patterns(
        self, level: int, objective: PatternObjective, duals: Duals, *, gap: float, seconds: float
    ) -> float:
        """Solve a core, and return the bound of the level.

        With the solution found, fewer patterns can be part of a better one: if a second core has all of them,
        it proves the solution or improves it.
        """
        incumbent, bound = self._incumbent, self._generated.bound
        value, until = incumbent.objective_value(objective), self._left_seconds - seconds
        for is_second in (False, True):
            distance = value - bound
            objective, duals, has_all = self._generated.within(level, duals, distance)
            always, best = self._generated.always(), incumbent.patterns.best(duals.reduced)
            kept, holds_all = core_of(incumbent.patterns, objective, duals, always, distance=distance)
            is_complete = has_all and holds_all
            if self._is_over(self._left_seconds - until) or (is_second and not is_complete):
                break
            is_exact, result = self._by_core(objective, best, kept, gap=gap, until=until)
            value = incumbent.objective_value(objective)
            if is_complete and is_exact and result.values and math.isfinite(value):
                bound = max(bound, min(result.bound, value))
            if is_complete or not is_exact or not result.is_optimal:
                break
            # If more patterns are close than fit into a core, pricing can only find more of them.
            if not core_of(incumbent.patterns, objective, duals, always, distance=value - bound)[1]:
                break
        return bound

    def _by_core(
        self, objective: PatternObjective, best: Integers, kept: Booleans, *, gap: float, until: float
    ) -> tuple[bool, Result]:
        """Solve a core, leaving some effort; return whether its rows are exact, and the result.

        `best` are the patterns of least reduced cost. If the core fixes domains and does not improve the
        incumbent, one that does not fix them follows.
        """
        incumbent, before = self._incumbent, self._incumbent.objective_value(objective)

        def solve(likely: Sequence[int] | None) -> tuple[Core, Result]:
            core = Core(incumbent, objective, kept, likely=likely)
            effort = self._limit_effort(self._left_seconds - until)
            bound = self._generated.bound
            selection, result = core.solve(bound=bound, gap=gap, effort=effort)
            self._left_seconds -= result.deterministic_seconds
            if selection is not None:
                incumbent.take(objective, selection)
            return core, result

        core, result = solve(incumbent.patterns.replicas(incumbent.options, best))
        is_better = incumbent.objective_value(objective) < before
        if core.fixes_domains and not is_better and not self._is_over(self._left_seconds - until):
            core, result = solve(None)
        return core.is_exact, result

    def _is_over(self, seconds: float) -> bool:
        """Return whether no effort is left, of a given amount, or no wall time."""
        return seconds <= 0 or monotonic() >= self._deadline_seconds

    def _by_counts(self, level: int, seconds: float) -> float:
        """Solve the program over replica counts, and return the lower bound."""
        incumbent, bound = self._incumbent, self._generated.bound
        value = incumbent.objective_value(incumbent.objective(level))
        if value - bound <= ROUNDING or seconds <= 0:
            return min(bound, value)
        caps = {incumbent.options.levels[n]: incumbent.cap(n) for n in range(level)}
        counts = Counts(incumbent.problem, incumbent.options, incumbent.shared, caps)
        if level < incumbent.levels.cost:
            terms = counts.level(incumbent.options.levels[level])
        else:
            terms = counts.cost(incumbent.levels.factor(level))
        held = incumbent.patterns.replicas(incumbent.options, incumbent.selection.patterns)
        begin = Solution(replicas=held, placements=(), added=incumbent.selection.added)
        solution, result = counts.minimize(terms, begin, bound=bound, effort=self._limit_effort(seconds))
        self._left_seconds -= result.deterministic_seconds
        if solution is None:
            return bound
        value = incumbent.objective_value(incumbent.offer(level, solution.replicas, solution.added))
        return max(bound, value if result.is_optimal else min(result.bound, value))

    def _limit_effort(self, deterministic_seconds: float) -> Effort:
        """Return some effort, within the remaining wall time."""
        return replace(
            self._effort,
            deterministic_seconds=max(0.0, deterministic_seconds),
            wall_seconds=max(LEAST_SECONDS, self._deadline_seconds - monotonic()),
        )
