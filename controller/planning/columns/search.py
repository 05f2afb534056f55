"""The lexicographic minimum, level by level: prices bound it, a core of columns attains it or comes close.

A level at which every model is at its own best needs no search. Any other is a problem of its own: its
prices give a bound, and cores that grow are solved until the answer is near enough to it, provably the best
of all columns, or the level's share of the effort is spent.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate_levels import Certifier, with_mixes
from controller.planning.columns.core import CoreProgram, core_of
from controller.planning.columns.greedy import fitted, greedy
from controller.planning.columns.market import Market
from controller.planning.columns.mixes import neighbours, rounded
from controller.planning.columns.phase import phase, weighted
from controller.planning.columns.pool import pool_of
from controller.planning.columns.prices import best_prices
from controller.planning.columns.selection import least_values, level_values, total_values
from controller.planning.problem import Proof, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.market import Answer, Quote
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.prices import Prices
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Selection
    from controller.planning.lexicographic import Limits

    Problem = Callable[[Sequence[Pool]], Phase]
    """Makes the problem of some level over some columns."""

GAP = 1e-3
"""Relative distance to the bound at which an answer is good enough."""

PROVEN_MODELS = 100
"""Up to how many models the best of all columns is sought, however near the answer is."""

TRIFLE = 0.1
"""Part of what a level comes to at most; to be that near to the bound is near enough for any value."""

FIRST_EXTRA = 0.25
"""How many columns the first core has beyond one per model, in columns per model."""

GROWTH = 3
"""How many times more of them each further core has."""

ROUNDING = 1e-9
"""Relative error of a bound that was computed in double precision."""

SHARE_PER_LEVEL = 0.5
"""Of the effort that is left."""

MOST_ROUNDS = 3
"""How often a level's bound over all mixes is sought, each time with the mixes that were missing."""

CERTAINTY = 0.25
"""To which part of what is near enough that bound is sought."""

NEARBY = 16
"""How many of the mixes near each model's best become columns."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The answer, in columns."""

    pools: tuple[Pool, ...]
    selection: Selection
    proofs: tuple[Proof, ...]
    tariffs: tuple[Floats, ...]
    """Per pool (n, j): what each column costs with what it takes at the last prices."""


def search(
    pools: Sequence[Pool],
    resources: Resources,
    asking: Asking,
    levels: Levels,
    limits: Limits,
    *,
    certifies: bool = False,
) -> Found:
    """Return the best selection that the effort allows, with a bound at each level.

    With a certificate there is also one over all mixes, and those that columns lack are found on the way.
    """
    certifier = Certifier(pools, resources, levels) if certifies else None
    return _Search(pools, resources, asking, levels, limits, certifier=certifier).run()


def scope_of(pools: Sequence[Pool]) -> Scope:
    """Return over what a bound holds that holds over these columns."""
    return Scope.EVERYTHING if all(pool.cohort.is_enumerable for pool in pools) else Scope.COLUMNS


class _Search:
    """What is known so far: the best answer, its values, and the effort that is left."""

    def __init__(
        self,
        pools: Sequence[Pool],
        resources: Resources,
        asking: Asking,
        levels: Levels,
        limits: Limits,
        *,
        certifier: Certifier | None,
    ) -> None:
        self._resources = resources
        self._asking = asking
        self._levels = levels
        self._scope = scope_of(pools)
        self._is_complete = self._scope is Scope.EVERYTHING
        self._limits = limits
        self._certifier = None if self._is_complete else certifier
        self._deadline_seconds = monotonic() + limits.wall_seconds
        self._pools = list(pools)
        _, _, prices = self._priced(lambda pools: weighted(pools, resources, levels), None)
        self._joint_prices = self._prices = prices.rows
        self._quote = self._joint_quote()
        self._tariffs = self._quote.tariffs
        self._best = greedy(self._pools, resources, asking, self._quote)
        self._values = self._value(self._best)
        self._least = least_values(self._pools, levels)
        self._totals = total_values(self._pools, levels)
        models = sum(len(pool.cost) for pool in pools)
        self._gap = 0.0 if models <= PROVEN_MODELS else GAP

    def run(self) -> Found:
        """Settle each level in turn."""
        bounds = [self._settle(level) for level in range(len(self._levels) + 1)]
        # Values are those at the end: a later level may have improved an earlier one.
        proofs = [
            Proof(
                level=self._levels.name(level),
                value=value,
                bound=min(bound, value),
                scope=self._scope,
                total=total,
            )
            for level, (value, bound, total) in enumerate(
                zip(self._values, bounds, [*self._totals, self._values[-1]], strict=True)
            )
        ]
        return Found(
            pools=tuple(self._pools),
            selection=self._best,
            proofs=self._certifier.certified(proofs) if self._certifier else tuple(proofs),
            tariffs=self._tariffs,
        )

    def _value(self, selection: Selection) -> list[int]:
        return level_values(self._pools, self._resources, self._levels, selection)

    def _settle(self, level: int) -> int:
        """Bring one level as low as the effort allows, and return what it cannot be below."""
        is_cost = level == len(self._levels)
        bound = 0 if is_cost else self._least[level]
        if is_cost or self._values[level] > bound:
            start = np.concatenate([self._prices, np.zeros(level)]) if is_cost else None
            priced = self._priced(lambda pools: self._phase(pools, level), start)
            problem, market, prices = self._certified(level, *priced)
            self._quote = self._quote if self._is_complete else self._joint_quote()
            bound = max(bound, self._improve(level, problem, prices))
            if is_cost:
                self._prices = prices.rows[: len(self._resources.capacity)] / problem.unit
                self._tariffs = market.tariffs(self._prices)
        return bound

    def _phase(self, pools: Sequence[Pool], level: int) -> Phase:
        return phase(
            pools, self._resources, self._levels, level=level, values=self._values, least=self._least
        )

    def _joint_quote(self) -> Quote:
        """Return what everything costs when all levels are weighed together."""
        joint = weighted(self._pools, self._resources, self._levels)
        return Market(self._pools, self._resources, joint).quote(self._joint_prices)

    def _priced(self, problem: Problem, start: Floats | None) -> tuple[Phase, Market, Prices]:
        """Return a problem with its prices, after mixes were added that its divisible answer calls for."""
        made = problem(self._pools)
        market = Market(self._pools, self._resources, made)
        prices = self._price(made, market, start)
        if self._is_complete:
            return made, market, prices
        near = [
            _nearby(pool, reduced, blend)
            for pool, reduced, blend in zip(self._pools, prices.answer.reduced, prices.blends, strict=True)
        ]
        costs = Market(near, self._resources, problem(near)).quote(prices.rows).reduced
        self._pools = [
            pool.joined(_cheapest(more, cost))
            for pool, more, cost in zip(self._pools, near, costs, strict=True)
        ]
        return self._repriced(problem, made, market, prices)

    def _repriced(
        self, problem: Problem, made: Phase, market: Market, prices: Prices
    ) -> tuple[Phase, Market, Prices]:
        """Return a problem with its prices after there were more columns, given what there was before."""
        wider = problem(self._pools)
        market = Market(self._pools, self._resources, wider, like=market)
        start = prices.rows / made.unit
        return wider, market, self._price(wider, market, start, known=prices.answers)

    def _certified(
        self, level: int, problem: Phase, market: Market, prices: Prices
    ) -> tuple[Phase, Market, Prices]:
        """Return the same with the mixes that columns lacked, and note what no mix at all can beat."""
        for turn in range(MOST_ROUNDS):
            if self._certifier is None:
                break
            tolerance = CERTAINTY * self._near_enough(level, max(0.0, prices.bound))
            missed = self._certifier.missed(self._pools, problem, prices, self._values, tolerance)
            if not missed or turn == MOST_ROUNDS - 1:
                break
            self._pools = with_mixes(self._pools, missed)
            again = self._repriced(lambda pools: self._phase(pools, level), problem, market, prices)
            problem, market, prices = again
        return problem, market, prices

    def _price(
        self, problem: Phase, market: Market, start: Floats | None, known: Sequence[Answer] = ()
    ) -> Prices:
        begin = None if start is None else start[: len(problem.capacity)] * problem.unit
        return best_prices(
            market,
            self._resources,
            problem,
            start=begin,
            known=known,
            deadline_seconds=self._deadline_seconds,
        )

    def _improve(self, level: int, problem: Phase, prices: Prices) -> int:
        """Solve growing cores until the level is near its bound; return what its value cannot be below."""
        extra = math.ceil(FIRST_EXTRA * sum(len(pool.cost) for pool in self._pools))
        share = _share(self._limits, SHARE_PER_LEVEL)
        self._try_parts(level, prices)
        bound = prices.bound - ROUNDING * abs(prices.bound) - 1e-6
        while share.deterministic_seconds > 0:
            counted = problem.value(self._best)
            if counted - bound < 1 or counted - bound <= self._near_enough(level, counted):
                break
            core = core_of(
                problem,
                prices.answer.reduced,
                self._quote.reduced,
                self._best,
                distance=counted - prices.bound,
                extra=extra,
            )
            program = CoreProgram(self._pools, self._resources, self._asking, problem, core)
            found, result = program.solve(
                self._best, bound=bound, gap=self._near_enough(level, bound) / 2, limits=share
            )
            share = self._spend(share, result.deterministic_seconds, result.wall_seconds)
            if found and problem.value(found) < counted:
                self._accept(level, found)
            if core.is_complete:
                if self._resources.fits_exactly:
                    bound = max(bound, result.bound if result.values else bound)
                break
            if result.deterministic_seconds * GROWTH > share.deterministic_seconds:
                break  # a larger core would not be searched to any use, and later levels need their share
            extra *= GROWTH
        return math.ceil((bound - problem.tie) / problem.unit - 1e-9)

    def _try_parts(self, level: int, prices: Prices) -> None:
        """Keep what comes near the divisible answer, if it is better."""
        quote = replace(self._quote, reduced=prices.answer.reduced)
        found = fitted(self._pools, self._resources, self._asking, quote, wanted=prices.parts, level=level)
        if self._value(found)[: level + 1] < self._values[: level + 1]:
            self._accept(level, found)

    def _near_enough(self, level: int, counted: float) -> float:
        """Return what distance to the bound is not worth any more effort."""
        total = self._totals[level] if level < len(self._levels) else 0
        return self._gap * max(counted, total * TRIFLE)

    def _accept(self, level: int, found: Selection) -> None:
        """Keep what was found, with the later levels served from what it leaves."""
        if level < len(self._levels):
            found = greedy(
                self._pools,
                self._resources,
                self._asking,
                self._quote,
                start=found,
                before=self._best,
                after=level,
            )
        self._best, self._values = found, self._value(found)

    def _spend(self, share: Limits, deterministic_seconds: float, wall_seconds: float) -> Limits:
        """Take what a search has used from the share and from the whole; return what is left of the share.

        What it used beyond its share is not taken from later levels: no search stops quite when it should.
        """
        self._limits = _less(
            self._limits, min(deterministic_seconds, share.deterministic_seconds), wall_seconds
        )
        return _less(share, deterministic_seconds, wall_seconds)


def _share(limits: Limits, share: float) -> Limits:
    return replace(
        limits,
        deterministic_seconds=limits.deterministic_seconds * share,
        wall_seconds=limits.wall_seconds * share,
    )


def _less(limits: Limits, deterministic_seconds: float, wall_seconds: float) -> Limits:
    return replace(
        limits,
        deterministic_seconds=max(0.0, limits.deterministic_seconds - deterministic_seconds),
        wall_seconds=max(0.0, limits.wall_seconds - wall_seconds),
    )


def _nearby(pool: Pool, reduced: Floats, blend: Floats) -> Pool:
    """Return columns near each model's cheapest one and near its part in a divisible answer."""
    best = reduced.argmin(axis=1)
    around = neighbours(pool.cohort, pool.mixes[np.arange(len(best)), best])
    mixes = np.concatenate([around, rounded(pool.cohort, blend)], axis=1)
    return replace(pool_of(pool.cohort, mixes), least=pool.least)


def _cheapest(pool: Pool, reduced: Floats) -> Integers:
    """Return the mixes of the cheapest columns, (n, up to NEARBY, w)."""
    order = np.argsort(reduced, axis=1, kind="stable")[:, :NEARBY]
    mixes: Integers = np.take_along_axis(pool.mixes, order[:, :, None], axis=1)
    return mixes
