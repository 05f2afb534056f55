"""Columns with their prices: found together, because prices tell which mixes are still missing."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.market import Market
from controller.planning.columns.mixes import neighbours, rounded
from controller.planning.columns.phase import weighted
from controller.planning.columns.pool import pool_of
from controller.planning.columns.prices import Prices, best_prices

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.market import Answer, Quote
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources

    Problem = Callable[[Sequence[Pool]], Phase]
    """Makes the problem of some level over some columns."""

    Enough = Callable[[Phase], float]
    """Tells from what bound on prices are good enough."""

NEARBY = 16
"""How many of the mixes near each model's best become columns."""


def _never(_: Phase) -> float:
    return inf


@dataclass(frozen=True, kw_only=True, slots=True)
class Priced:
    """A problem with its prices."""

    problem: Phase
    market: Market
    prices: Prices


class Pricing:
    """The columns so far, and ways to price them."""

    def __init__(
        self,
        pools: Sequence[Pool],
        resources: Resources,
        levels: Levels,
        *,
        is_complete: bool,
        deadline_seconds: float,
    ) -> None:
        """Begin with some columns; where they are complete, none are ever added."""
        self.pools = list(pools)
        self._resources = resources
        self._levels = levels
        self._is_complete = is_complete
        self._deadline_seconds = deadline_seconds

    def priced(self, problem: Problem, start: Floats | None = None, *, enough: Enough = _never) -> Priced:
        """Return a problem with its prices, over the columns that there are.

        The start is per unit of the problem's value. A bound that is enough ends the search.
        """
        made = problem(self.pools)
        market = Market(self.pools, self._resources, made)
        prices = self._best(made, market, start, enough=enough(made))
        return Priced(problem=made, market=market, prices=prices)

    def widened(self, problem: Problem, priced: Priced, *, enough: Enough = _never) -> Priced:
        """Return a priced problem anew, after mixes were added that its divisible answer calls for."""
        if self._is_complete:
            return priced
        prices = priced.prices
        self._add_near(
            problem,
            priced.market,
            prices.answer.reduced,
            prices.blends,
            prices.rows,
            unit=priced.problem.unit,
        )
        return self.repriced(problem, priced, enough=enough)

    def repriced(self, problem: Problem, priced: Priced, *, enough: Enough = _never) -> Priced:
        """Return a problem with its prices after there were more columns, given what there was before."""
        wider = problem(self.pools)
        market = Market(self.pools, self._resources, wider, like=priced.market)
        start, known = priced.prices.rows / priced.problem.unit, priced.prices.answers
        prices = self._best(wider, market, start, known=known, enough=enough(wider))
        return Priced(problem=wider, market=market, prices=prices)

    def joint(self, pools: Sequence[Pool]) -> Phase:
        """Return the problem of all levels weighed together."""
        return weighted(pools, self._resources, self._levels)

    def together(self, rows: Floats) -> tuple[Phase, Quote]:
        """Return the problem of all levels weighed together, and what everything costs at prices for it."""
        made = self.joint(self.pools)
        return made, Market(self.pools, self._resources, made).quote(rows)

    def surround(self, mixes: Sequence[Integers], rows: Floats) -> None:
        """Add one mix for each model, per pool (n, w), and what is near it and near each model's best.

        The prices are those for all levels weighed together.
        """
        if self._is_complete:
            return
        market = Market(self.pools, self._resources, self.joint(self.pools))
        priced = zip(self.pools, mixes, market.takings.place_prices(rows), strict=True)
        self.pools = [
            pool.joined(pool_of(pool.cohort, own[:, None, :], price)) for pool, own, price in priced
        ]
        blends = [own.astype(np.float64) for own in mixes]
        self._add_near(self.joint, market, market.quote(rows).reduced, blends, rows)

    def add(self, mixes: Mapping[int, Integers], priced: Priced) -> None:
        """Add mixes, (n, more, w) for each pool that lacks any, spread as is cheap at some prices."""
        prices = priced.market.takings.place_prices(priced.prices.rows)
        for index, more in mixes.items():
            pool = self.pools[index]
            self.pools[index] = pool.joined(pool_of(pool.cohort, more, prices[index]))

    def _add_near(
        self,
        problem: Problem,
        market: Market,
        reduced: Sequence[Floats],
        blends: Sequence[Floats],
        rows: Floats,
        *,
        unit: int = 1,
    ) -> None:
        """Add the cheapest of the columns near each model's cheapest one and near its part in an answer.

        The answer may be divided: per pool (n, w). The pools may have got more columns since they had those
        that the reduced costs, per pool (n, j), are of. Prices are for so many units of the problem's value.
        """
        priced = zip(self.pools, reduced, blends, market.takings.place_prices(rows), strict=True)
        near = [_nearby(pool, costs, blend, price) for pool, costs, blend, price in priced]
        made = problem(near)
        costs = Market(near, self._resources, made).quote(rows * (made.unit / unit)).reduced
        orders = [np.argsort(cost, axis=1, kind="stable")[:, :NEARBY] for cost in costs]
        self.pools = [
            pool.joined(found.only(order))
            for pool, found, order in zip(self.pools, near, orders, strict=True)
        ]

    def _best(
        self,
        problem: Phase,
        market: Market,
        start: Floats | None,
        *,
        known: Sequence[Answer] = (),
        enough: float = inf,
    ) -> Prices:
        begin = None if start is None else start[: len(problem.capacity)] * problem.unit
        return best_prices(
            market,
            self._resources,
            problem,
            start=begin,
            known=known,
            enough=enough,
            deadline_seconds=self._deadline_seconds,
        )


def _nearby(pool: Pool, reduced: Floats, blend: Floats, place_price: Floats) -> Pool:
    """Return columns near each model's cheapest one and near its part in a divisible answer."""
    best = reduced.argmin(axis=1)
    around = neighbours(pool.cohort, pool.mixes[np.arange(len(best)), best])
    mixes = np.concatenate([around, rounded(pool.cohort, blend)], axis=1)
    return replace(pool_of(pool.cohort, mixes, place_price), least=pool.least)
