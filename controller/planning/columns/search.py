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

from controller.planning.columns.certificate.levels import NOTHING_MISSED, Certifier, with_mixes
from controller.planning.columns.core import CoreProgram, core_of
from controller.planning.columns.effort import Effort
from controller.planning.columns.greedy import fitted, greedy
from controller.planning.columns.nearness import Nearness
from controller.planning.columns.phase import capped_levels, level_weights, phase
from controller.planning.columns.pricing import Pricing
from controller.planning.columns.running import wanted_columns
from controller.planning.columns.selection import excess_values, least_values, level_values, total_values
from controller.planning.known_prices import LevelPrices
from controller.planning.problem import Proof, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.earlier import Earlier
    from controller.planning.columns.market import Market
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.prices import Prices
    from controller.planning.columns.pricing import Problem
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.running import Running
    from controller.planning.columns.selection import Selection
    from controller.planning.lexicographic import Limits

FIRST_EXTRA = 0.25
"""How many columns the first core has beyond one per model, in columns per model."""

GROWTH = 3
"""How many times more of them each further core has."""

ROUNDING = 1e-9
"""Relative error of a bound that was computed in double precision."""

MOST_ROUNDS = 3
"""How often a level's bound over all mixes is sought, each time with the mixes that were missing."""

CERTAINTY = 0.25
"""To which part of what is near enough bounds are sought that are cheap to come by."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The answer, in columns."""

    pools: tuple[Pool, ...]
    selection: Selection
    proofs: tuple[Proof, ...]
    tariffs: tuple[Floats, ...]
    """Per pool (n, j): what each column costs with what it takes at the last prices."""

    joint: Floats
    """(rows,): prices of what is shared, all levels weighed together."""

    level_prices: tuple[LevelPrices, ...]
    """Of the levels that were searched."""


def search(
    pools: Sequence[Pool],
    resources: Resources,
    asking: Asking,
    levels: Levels,
    limits: Limits,
    *,
    running: Running | None = None,
    certifies: bool = False,
) -> Found:
    """Return the best selection that the effort allows, with a bound at each level.

    It begins from what is running, where given: what has hardly changed is hardly searched. With a
    certificate there is also a bound over all mixes, and those that columns lack are found on the way.
    """
    certifier = Certifier(pools, resources, levels) if certifies else None
    return _Search(pools, resources, asking, levels, limits, running=running, certifier=certifier).run()


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
        running: Running | None,
        certifier: Certifier | None,
    ) -> None:
        self._resources = resources
        self._asking = asking
        self._levels = levels
        self._scope = scope_of(pools)
        self._is_complete = self._scope is Scope.EVERYTHING
        deadline_seconds = monotonic() + limits.wall_seconds
        self._effort = Effort(limits, deadline_seconds=deadline_seconds)
        self._certifier = None if self._is_complete else certifier
        self._pricing = Pricing(
            pools,
            resources,
            levels,
            is_complete=self._is_complete,
            deadline_seconds=deadline_seconds,
        )
        self._earlier: Earlier | None = running.earlier if running else None
        wanted = self._begin(running)
        self._quote = self._pricing.joint_quote(self._joint_prices)
        self._tariffs = self._quote.tariffs
        self._level_prices: list[LevelPrices] = []
        self._best = greedy(self._pools, resources, asking, self._quote, wanted=wanted)
        self._values = self._value(self._best)
        self._least = least_values(self._pools, levels)
        self._totals = total_values(self._pools, levels)
        models = sum(len(pool.cost) for pool in pools)
        self._nearness = Nearness(models=models, least=self._least, totals=self._totals)

    @property
    def _pools(self) -> list[Pool]:
        return self._pricing.pools

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
            joint=self._joint_prices,
            level_prices=tuple(self._level_prices),
        )

    def _begin(self, running: Running | None) -> tuple[Integers, ...] | None:
        """Find prices for all levels together, or take those that are known, and return a beginning."""
        if running is None:
            _, _, prices = self._pricing.found(self._pricing.joint)
            self._joint_prices = prices.rows
            return None
        self._joint_prices = running.earlier.joint
        mixes = running.mixes(self._pools)
        self._pricing.surround(mixes, self._joint_prices)
        return wanted_columns(self._pools, self._pricing.joint_quote(self._joint_prices).reduced, mixes)

    def _value(self, selection: Selection) -> list[int]:
        return level_values(self._pools, self._resources, self._levels, selection)

    def _excess(self) -> list[int]:
        return excess_values(self._pools, self._levels, self._best)

    def _settle(self, level: int) -> int:
        """Bring one level as low as the effort allows, and return what it cannot be below."""
        is_cost = level == len(self._levels)
        least = 0 if is_cost else self._least[level]
        if not is_cost and self._values[level] <= least:
            return least
        priced = self._pricing.found(self._problem_of(level), self._start(level), enough=self._enough)
        problem, market, prices = self._certified(level, *priced)
        self._quote = self._quote if self._is_complete else self._pricing.joint_quote(self._joint_prices)
        self._try_parts(level, problem, prices)
        bound = max(least, self._improve(level, problem, prices))
        self._remember(level, problem, market, prices)
        return bound

    def _start(self, level: int) -> Floats:
        """Return prices to begin a level with, per unit of its value: known ones, or those of all levels."""
        capped = capped_levels(self._excess(), level)
        known = self._earlier.rows(level, capped) if self._earlier else None
        if known is not None:
            return known
        weights = (*level_weights(self._pools, self._levels).tolist(), 1.0)
        caps = [weights[earlier] for earlier in capped]
        start: Floats = np.concatenate([self._joint_prices, caps]) / weights[level]
        return start

    def _enough(self, problem: Phase) -> float:
        """Return what bound makes better prices needless: the answer is nearer to it than it has to be."""
        counted = problem.value(self._best)
        return counted - CERTAINTY * self._nearness.enough(problem.level, counted, bound=counted)

    def _certified(
        self, level: int, problem: Phase, market: Market, prices: Prices
    ) -> tuple[Phase, Market, Prices]:
        """Return the same with the mixes that columns lacked, and note what no mix at all can beat."""
        for _ in range(MOST_ROUNDS - 1):
            missed = self._missed(level, problem, prices)
            if not missed:
                return problem, market, prices
            self._pricing.pools = with_mixes(self._pools, missed)
            again = self._pricing.repriced(
                self._problem_of(level), problem, market, prices, enough=self._enough
            )
            problem, market, prices = again
        self._missed(level, problem, prices)
        return problem, market, prices

    def _missed(self, level: int, problem: Phase, prices: Prices) -> Mapping[int, Integers]:
        """Return the mixes that columns lack at some prices, and note what no mix at all can beat."""
        if self._certifier is None:
            return NOTHING_MISSED
        counted = max(0.0, prices.bound)
        tolerance = CERTAINTY * self._nearness.enough(level, counted, bound=counted)
        return self._certifier.missed(self._pools, problem, prices, self._values, tolerance)

    def _remember(self, level: int, problem: Phase, market: Market, prices: Prices) -> None:
        """Keep what a level was settled with, for another search and for what is said about columns."""
        rows = prices.rows / problem.unit
        shared = len(self._resources.capacity)
        names = [self._levels.name(earlier) for earlier in problem.capped]
        self._level_prices.append(
            LevelPrices(
                level=self._levels.name(level),
                rows=tuple(rows[:shared].tolist()),
                caps=tuple(zip(names, rows[shared:].tolist(), strict=True)),
            )
        )
        if level == len(self._levels):
            self._tariffs = market.tariffs(rows[:shared])

    def _problem_of(self, level: int) -> Problem:
        return lambda pools: phase(
            pools, self._resources, self._levels, level=level, values=self._values, excess=self._excess()
        )

    def _improve(self, level: int, problem: Phase, prices: Prices) -> int:
        """Solve growing cores until the level is near its bound; return what its value cannot be below."""
        extra = math.ceil(FIRST_EXTRA * sum(len(pool.cost) for pool in self._pools))
        effort = self._effort
        effort.begin_level()
        bound = prices.bound - ROUNDING * abs(prices.bound) - 1e-6
        while effort.is_left:
            counted = problem.value(self._best)
            near = self._nearness.enough(level, counted, bound=bound)
            if counted - bound < 1 or counted - bound <= near:
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
            gap = self._nearness.enough(level, bound, bound=bound) / 2
            found, result = program.solve(self._best, bound=bound, gap=gap, limits=effort.share)
            effort.spend(result)
            if found and problem.value(found) < counted:
                self._accept(level, found)
            if core.is_complete:
                if self._resources.fits_exactly:
                    bound = max(bound, result.bound if result.values else bound)
                break
            if result.deterministic_seconds * GROWTH > effort.share.deterministic_seconds:
                break  # a larger core would not be searched to any use, and later levels need their share
            extra *= GROWTH
        return math.ceil((bound - problem.tie) / problem.unit - 1e-9)

    def _try_parts(self, level: int, problem: Phase, prices: Prices) -> None:
        """Keep what comes near the divisible answer, if better and no worse at any earlier level."""
        quote = replace(self._quote, reduced=prices.answer.reduced)
        found = fitted(self._pools, self._resources, self._asking, quote, wanted=prices.parts, level=level)
        values = self._value(found)
        keeps = all(value <= cap for value, cap in zip(values[:level], self._values[:level], strict=True))
        if keeps and values[level] < self._values[level] and math.isfinite(problem.value(found)):
            self._accept(level, found)

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
