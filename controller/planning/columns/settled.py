"""What a level was settled with, and what of its proof stands once there are more columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.market import Market

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.pricing import Problem
    from controller.planning.columns.resources import Resources

ROUNDING = 1e-9
"""Relative error of a bound that was computed in double precision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    """A level's bound, and prices for it, over the columns that there were."""

    problem: Problem
    rows: Floats
    """Prices of the problem."""

    bound: int
    """The level's value is no less."""

    columns: tuple[Integers, ...]
    """Per pool (n,): how many columns each model had."""

    def over(self, pools: Sequence[Pool], resources: Resources) -> int:
        """Return what the value is no less than over the columns that there are now.

        An answer of the earlier columns keeps to the bound. Any other has a new one, and so counts for no
        less than the prices prove plus what the cheapest new one costs there above its model's cheapest.
        """
        fresh = [_fresh(pool, had) for pool, had in zip(pools, self.columns, strict=True)]
        if not any(which.any() for which in fresh):
            return self.bound
        problem = self.problem(pools)
        answer = Market(pools, resources, problem).answer(self.rows)
        slacks = [
            float((costs - costs.min(axis=1, keepdims=True))[which].min(initial=math.inf))
            for costs, which in zip(answer.reduced, fresh, strict=True)
        ]
        least = min(slacks)
        if least == math.inf:
            return self.bound
        return min(self.bound, whole_number(problem, safe_bound(answer.bound + least)))


def column_counts(pools: Sequence[Pool]) -> tuple[Integers, ...]:
    """Return how many columns each model has, per pool (n,)."""
    return tuple((~pool.repeated).sum(axis=1) for pool in pools)


def safe_bound(bound: float) -> float:
    """Return a bound less what rounding may have added to it."""
    return bound - ROUNDING * abs(bound) - 1e-6


def whole_number(problem: Phase, bound: float) -> int:
    """Return what the level's value is no less than, given a safe bound of its problem."""
    return math.ceil((bound - problem.tie) / problem.unit - 1e-9)


def _fresh(pool: Pool, had: Integers) -> Booleans:
    """(n, j): whether a column has come since; those that were there keep their numbers."""
    which: Booleans = (np.arange(pool.repeated.shape[1]) >= had[:, None]) & ~pool.repeated
    return which
