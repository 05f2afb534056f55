"""The levels of the lexicographic order as problems over the patterns.

A level at which every model is at its own best forbids the patterns that are not; any other earlier level is
kept by a row over its sum. Cost comes last, and of equal cost the least disruption.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.core import Selection
from controller.planning.engine.master import Objective
from controller.planning.problem import COST, EXACT_LIMIT, PER_MILLE, Proof, Stage, level_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.engine.master import Duals
    from controller.planning.engine.options import Options
    from controller.planning.engine.patterns import Patterns
    from controller.planning.engine.shared import Floats, Integers, Shared

ABSOLUTE_ERROR = 1e-9
RELATIVE_ERROR = 1e-11
"""What bounds may be off by: sums of at most some hundred thousand products in double precision."""


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What the best answer so far comes to, and at which levels another one is to be at its least."""

    values: tuple[int, ...]
    """Per level, cost last."""

    easy: range
    """Levels that are assumed to be at their least."""


class Levels:
    """The levels of one problem, whatever its patterns; the one after the last shortfall is cost."""

    def __init__(self, options: Options, shared: Shared, patterns: Patterns) -> None:
        """Begin with some patterns, which say what a unit of cost has to count for."""
        self._options = options
        self._shared = shared
        self.cost = len(options.levels)
        """Index of the last level."""
        self.totals = total_values(options)
        """What each level comes to where nothing is served, without cost."""
        self.most_disruption, self._cost_unit = _cost_unit(options, shared, patterns)

    def name(self, level: int) -> str:
        """Return what a level is called."""
        return COST if level == self.cost else level_name(*self._options.levels[level])

    def unit(self, level: int) -> int:
        """Return what a unit of a level's value counts for in its objective."""
        return self._cost_unit if level == self.cost else 1

    def tie(self, level: int) -> int:
        """Return what disruption adds to a level's objective at most."""
        return min(self.most_disruption, self._cost_unit - 1) if level == self.cost else 0

    def values(self, patterns: Patterns, selection: Selection) -> tuple[int, ...]:
        """Return what a selection comes to at each level, cost last."""
        short = patterns.short[:, selection.patterns]
        values = [int(short[self._options.level == level].sum()) for level in range(self.cost)]
        prices = self._shared.growth_price.tolist()
        grown = sum(price * count for price, count in zip(prices, selection.added, strict=True))
        return (*values, int(patterns.cost[selection.patterns].sum()) + grown)

    def least(self, patterns: Patterns, level: int) -> int:
        """Return the sum of the least shortfalls of a level; 0 for cost."""
        return int(patterns.least_short[self._options.level == level].sum()) if level < self.cost else 0

    def kept(self, patterns: Patterns, standing: Standing, level: int) -> list[int]:
        """Return the levels before one whose sums are kept by rows."""
        return [n for n in range(level) if self._is_kept(patterns, standing, n)]

    def _is_kept(self, patterns: Patterns, standing: Standing, level: int) -> bool:
        """Tell whether a level is kept by a row over its sum."""
        return level not in standing.easy and standing.values[level] > self.least(patterns, level)

    def objective(self, patterns: Patterns, standing: Standing, level: int) -> Objective:
        """Return the problem of one level, given what all before it come to."""
        options, is_cost = self._options, level == self.cost
        unit = self.unit(level)
        ties = patterns.disruption if unit > 1 else 0
        value = (patterns.cost * unit + ties if is_cost else self._short(patterns, level)).astype(np.float64)
        kept = self.kept(patterns, standing, level)
        for earlier in range(level):
            if earlier in kept:
                continue
            for stage in Stage:
                at = options.level[stage, patterns.model] == earlier
                value[at & (patterns.short[stage] > patterns.least_short[stage, patterns.model])] = math.inf
        growth = self._shared.growth_price * (unit if is_cost else 0)
        return Objective(
            value=value,
            kept=tuple(self._short(patterns, earlier) for earlier in kept),
            caps=tuple(standing.values[earlier] for earlier in kept),
            growth_price=growth.astype(np.float64),
        )

    def prices(
        self, patterns: Patterns, standing: Standing, level: int, duals: Duals
    ) -> tuple[Floats, Floats]:
        """Return what options count for, and units of shortfall by stage and model, at some duals."""
        options = self._options
        stages = np.zeros(options.level.shape)
        caps = dict(zip(self.kept(patterns, standing, level), duals.caps.tolist(), strict=True))
        for earlier in range(level):
            stages[options.level == earlier] = caps.get(earlier, math.inf)
        stages[options.level == level] = 1.0
        if level < self.cost:
            return np.zeros(len(options.count)), stages
        ties = options.disruption if self._cost_unit > 1 else 0
        return (options.cost * self._cost_unit + ties).astype(np.float64), stages

    def _short(self, patterns: Patterns, level: int) -> Integers:
        """Return what each pattern is short of at a level, (patterns,)."""
        at = self._options.level[:, patterns.model] == level
        short: Integers = np.where(at, patterns.short, 0).sum(axis=0)
        return short


def whole_bound(bound: float) -> int:
    """Return what a whole number cannot be below, given a bound summed up in double precision."""
    return math.ceil(bound - ABSOLUTE_ERROR - RELATIVE_ERROR * abs(bound))


def total_values(options: Options) -> list[int]:
    """Return what each level comes to where nothing is served."""
    totals = [0] * len(options.levels)
    for r in range(len(options.amounts)):
        for model in np.flatnonzero(options.requirement[r] > 0).tolist():
            level = int(options.level[options.stage[r, model], model])
            totals[level] += PER_MILLE * int(options.weight[r, model])
    return totals


def proofs_of(levels: Levels, values: Sequence[int], bounds: Sequence[int]) -> tuple[Proof, ...]:
    """Return what is proven of each level, given the values of those before it."""
    return tuple(
        Proof(level=levels.name(level), value=value, bound=min(bound, value), total=total)
        for level, (value, bound, total) in enumerate(
            zip(values, bounds, [*levels.totals, values[-1]], strict=True)
        )
    )


def _cost_unit(options: Options, shared: Shared, patterns: Patterns) -> tuple[int, int]:
    """Return what disruption comes to at most, and what a unit of cost counts for, which is over twice that.

    A bound on both then says what cost is at least, whatever disruption comes to. Where numbers would become
    too large to be exact, a unit counts for less, and disruption for nothing.
    """
    disruption = int(np.maximum.reduceat(patterns.disruption, patterns.start)[patterns.is_enumerated].sum())
    by_variant = np.maximum.reduceat(options.disruption[:-1], options.first)
    for model in np.flatnonzero(~patterns.is_enumerated).tolist():
        disruption += int(by_variant[list(options.members[model])].sum())
    cost = int(np.maximum.reduceat(options.cost[:-1], options.first).sum())
    cost += int((shared.growth_price * shared.growth_limit).sum())
    unit = 2 * (disruption + 1)
    return (disruption, unit) if unit <= EXACT_LIMIT // (4 * (cost + 1)) else (0, 1)
