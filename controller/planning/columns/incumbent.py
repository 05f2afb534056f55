"""The best answer so far, and the cores that make it better.

A core of one level alone would spoil the later ones, of which it knows nothing. So the first core weighs all
levels together, and the first of a level weighs it far above them; only what those leave is sought with the
level alone.
"""

from __future__ import annotations

import math
from itertools import count
from typing import TYPE_CHECKING

from controller.planning.columns.cores import Cores
from controller.planning.columns.greedy import greedy, resumed
from controller.planning.columns.phase import combined, in_small_numbers
from controller.planning.columns.running import wishes
from controller.planning.columns.selection import excess_values, level_values
from controller.planning.columns.settled import safe_bound, whole_number

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.effort import Effort
    from controller.planning.columns.nearness import Goal, Nearness
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pricing import Priced, Pricing
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.running import Beginning
    from controller.planning.columns.selection import Selection

TOGETHER_SHARE = 0.1
"""Of the effort that is left, for a core that weighs levels together."""

TOGETHER_GAP = 1e-4
"""Relative distance to the bound at which that ends."""


class Incumbent:
    """An answer over the columns that there are, and the effort that may be spent on a better one."""

    def __init__(
        self,
        pricing: Pricing,
        resources: Resources,
        asking: Asking,
        levels: Levels,
        *,
        effort: Effort,
        nearness: Nearness,
        joint: Floats,
        beginning: Beginning,
    ) -> None:
        """Begin there, as far as there is room."""
        self._pricing = pricing
        self._resources = resources
        self._asking = asking
        self._levels = levels
        self._effort = effort
        self._nearness = nearness
        self._joint = joint
        self._cores = Cores(resources, asking, effort)
        self._is_weighing = True
        self.weigh()
        self.best = self._first(beginning)
        self.values = self._value(self.best)

    def weigh(self) -> None:
        """Weigh all levels together anew: there are other columns."""
        self._together, self.quote = self._pricing.together(self._joint)

    def excess(self) -> list[int]:
        """Return by how much models exceed their own best at each level."""
        return excess_values(self._pricing.pools, self._levels, self.best)

    def is_near(self, goal: Goal, problem: Phase, bound: float) -> bool:
        """Tell whether the answer is near enough to a bound of the problem."""
        counted = problem.value(self.best)
        near = self._nearness.tolerated(goal, counted, bound=bound)
        return math.isfinite(counted) and (counted - bound < 1 or counted - bound <= near)

    def improve_together(self) -> None:
        """Keep what a core of all levels weighed together makes better."""
        self._improve_weighed(self._together, self.quote.reduced, self.quote.bound)

    def improve_first(self, goal: Goal, priced: Priced) -> None:
        """Keep what a core makes better in which a level counts first, and later ones next."""
        problem, prices = priced.problem, priced.prices
        if goal.level == len(self._levels) or self.is_near(goal, problem, prices.bound):
            return
        near = self._nearness.enough(goal.level, problem.value(self.best), bound=prices.bound)
        # What is near to its best at the level is worth more than all else.
        times = max(1.0, (self._together.value(self.best) - self.quote.bound) / max(1.0, near))
        pairs = zip(prices.answer.reduced, self.quote.reduced, strict=True)
        self._improve_weighed(
            combined(problem, times, self._together),
            tuple(times * first + rest for first, rest in pairs),
            times * prices.bound + self.quote.bound,
        )
        self._effort.begin()

    def improve(self, goal: Goal, priced: Priced, *, most_cores: int | None = None) -> int:
        """Solve growing cores until a level is near its bound; return what its value cannot be below."""
        problem, prices = priced.problem, priced.prices
        bound = max(goal.least, safe_bound(prices.bound))
        for turn in count() if most_cores is None else range(most_cores):
            if not self._effort.is_left or self.is_near(goal, problem, bound):
                break
            solved = self._cores.solved(
                self._pricing.pools,
                problem,
                self.best,
                reduced=prices.answer.reduced,
                ties=self.quote.reduced,
                bin_price=self.quote.bin_price,
                distance=problem.value(self.best) - prices.bound,
                bound=bound,
                gap=self._nearness.gap(goal, bound=bound),
                turn=turn,
            )
            if solved.found and problem.value(solved.found) < problem.value(self.best):
                self._accept(goal.level, solved.found)
            if solved.is_complete and self._resources.fits_exactly:
                bound = max(bound, solved.bound)
            if solved.is_complete or not solved.is_worth_growing:
                break
        return max(goal.least, whole_number(problem, bound))

    def _first(self, beginning: Beginning) -> Selection:
        given = self._pricing.pools, self._resources, self._asking, self.quote
        if beginning.mixes is None:
            return greedy(*given, wanted=beginning.drawn)
        had = wishes(self._pricing.pools, self.quote.reduced, beginning.mixes)
        found = resumed(*given, start=had.kept, wanted=had.wanted)
        return found or greedy(*given, wanted=had.wanted)

    def _improve_weighed(self, problem: Phase, reduced: Sequence[Floats], bound: float) -> None:
        """Keep what a core of a problem of several levels makes better, by their order.

        Once the effort for one was spent in vain, no other is tried.
        """
        counted = problem.value(self.best)
        if not self._is_weighing or not math.isfinite(counted):
            return
        self._effort.begin(TOGETHER_SHARE)
        small, worth = in_small_numbers(problem, self._resources)
        pools = self._pricing.pools
        rounded = sum(len(pool.cost) for pool in pools) + int(self._resources.growth_limit.sum())
        solved = self._cores.solved(
            pools,
            small,
            self.best,
            reduced=reduced,
            ties=reduced,
            bin_price=self.quote.bin_price,
            distance=counted - bound,
            bound=bound / worth - rounded,
            gap=TOGETHER_GAP * abs(self.quote.bound) / worth,
        )
        if solved.found and (values := self._value(solved.found)) < self.values:
            self.best, self.values = solved.found, values
        else:
            self._is_weighing = solved.is_optimal

    def _accept(self, level: int, found: Selection) -> None:
        """Keep what was found, with the later levels served from what it leaves, if that is better by order.

        It can be worse although its level is better: an earlier one may have become better than its cap says.
        """
        if level < len(self._levels):
            given = self._pricing.pools, self._resources, self._asking, self.quote
            served = greedy(*given, start=found, before=self.best, after=level)
            found = min(served, found, key=self._value)
        if (values := self._value(found)) < self.values:
            self.best, self.values = found, values

    def _value(self, selection: Selection) -> list[int]:
        return level_values(self._pricing.pools, self._resources, self._levels, selection)
