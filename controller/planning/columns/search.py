"""The lexicographic minimum, level by level: prices bound it, a core of columns attains it or comes close.

A level at which every model is at its own best needs no search. Any other is a problem of its own: its
prices give a bound, and cores that grow are solved until the answer is near enough to it, provably the best
of all columns, or the level's share of the effort is spent.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate.levels import NOTHING_MISSED, Certifier
from controller.planning.columns.effort import Effort
from controller.planning.columns.incumbent import Incumbent
from controller.planning.columns.nearness import Goal, Nearness
from controller.planning.columns.phase import capped_levels, level_weights
from controller.planning.columns.phase import phase as phase_over
from controller.planning.columns.pricing import Pricing
from controller.planning.columns.running import Beginning
from controller.planning.columns.selection import Found, least_values, total_values
from controller.planning.columns.settled import Settled, column_counts
from controller.planning.known_prices import LevelPrices
from controller.planning.problem import Proof, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.pricing import Priced, Problem
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.running import Running
    from controller.planning.lexicographic import Limits

MOST_ROUNDS = 3
"""How often a level's bound over all mixes is sought, each time with the mixes that were missing."""


def search(
    pools: Sequence[Pool],
    resources: Resources,
    asking: Asking,
    levels: Levels,
    limits: Limits,
    *,
    running: Running | None = None,
    certifies: bool = False,
    is_rough: bool = False,
) -> Found:
    """Return the best selection that the effort allows, with a bound at each level.

    It begins from what is running, where given: what has hardly changed is hardly searched. With a
    certificate there is also a bound over all mixes, and those that columns lack are found on the way. A
    rough search solves one core for each level, over the mixes that there are, and leaves it at that.
    """
    certifier = Certifier(pools, resources, levels) if certifies else None
    return _Search(
        pools, resources, asking, levels, limits, running=running, certifier=certifier, is_rough=is_rough
    ).run()


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
        is_rough: bool,
    ) -> None:
        self._resources = resources
        self._asking = asking
        self._levels = levels
        self._scope = scope_of(pools)
        is_complete = self._scope is Scope.EVERYTHING
        self._is_closed = is_complete
        deadline_seconds = monotonic() + limits.wall_seconds
        models = sum(len(pool.cost) for pool in pools)
        self._effort = Effort(
            limits, models=models, rows=len(resources.slots), deadline_seconds=deadline_seconds
        )
        self._certifier = None if is_complete else certifier
        self._pricing = Pricing(
            pools,
            resources,
            levels,
            is_complete=is_complete,
            deadline_seconds=deadline_seconds,
        )
        self._running = running
        self._is_rough = is_rough
        self._thorough_seconds = 0.0 if is_rough else limits.deterministic_seconds
        if running and running.is_brief:
            self._thorough_seconds = running.earlier.effort_seconds
        self._least = least_values(pools, levels)
        self._totals = total_values(pools, levels)
        self._nearness = Nearness(models=models, least=self._least, totals=self._totals)
        beginning = self._begin(running)
        self._incumbent = Incumbent(
            self._pricing,
            resources,
            asking,
            levels,
            effort=self._effort,
            nearness=self._nearness,
            joint=self._joint_prices,
            beginning=beginning,
        )
        self._rows = self._joint_prices
        self._level_prices: dict[int, LevelPrices] = {}
        self._settled: dict[int, Settled] = {}

    @property
    def _pools(self) -> list[Pool]:
        return self._pricing.pools

    def run(self) -> Found:
        """Settle each level in turn."""
        self._incumbent.improve_together()
        bounds = self._settle_all()
        values = self._incumbent.values
        proofs = [
            Proof(
                level=self._levels.name(level),
                value=value,
                bound=min(bound, value),
                scope=self._scope,
                total=total,
            )
            for level, (value, bound, total) in enumerate(
                zip(values, bounds, [*self._totals, values[-1]], strict=True)
            )
        ]
        return Found(
            pools=tuple(self._pools),
            selection=self._incumbent.best,
            proofs=self._certifier.certified(proofs) if self._certifier else tuple(proofs),
            rows=self._rows,
            joint=self._joint_prices,
            level_prices=tuple(prices for _, prices in sorted(self._level_prices.items())),
            effort_seconds=self._thorough_seconds,
        )

    def _settle_all(self) -> list[int]:
        """Settle all levels, and return what each cannot be below.

        Columns that came for a later level can undo the proof of an earlier one. Where that is far from its
        bound then, levels are settled again, from that one on, and no more columns come.
        """
        levels = range(len(self._levels) + 1)
        for level in levels:
            self._settle(level)
        bounds = [self._bound(level) for level in levels]
        undone = [level for level in levels if self._is_undone(level, bounds[level])]
        if not undone:
            return bounds
        self._is_closed = True
        for level in levels[undone[0] :]:
            self._settle(level)
        return [self._bound(level) for level in levels]

    def _bound(self, level: int) -> int:
        """Return what a level cannot be below, over the columns that there are."""
        least = 0 if level == len(self._levels) else self._least[level]
        settled = self._settled.get(level)
        return max(least, settled.over(self._pools, self._resources)) if settled else least

    def _is_undone(self, level: int, bound: int) -> bool:
        """Tell whether a level is no longer near to what it cannot be below, and was when it was settled."""
        settled, value = self._settled.get(level), self._incumbent.values[level]
        if settled is None or bound >= min(settled.bound, value):
            return False
        return value - bound > self._nearness.enough(level, value, bound=bound)

    def _begin(self, running: Running | None) -> Beginning:
        """Find prices for all levels together, or take those that are known, and return where to begin."""
        if running is None:
            joint = self._pricing.joint
            priced = self._pricing.widened(joint, self._pricing.priced(joint))
            self._joint_prices = priced.prices.rows
            return Beginning(drawn=priced.market.drawn(priced.prices.answers, priced.prices.weights))
        self._joint_prices = running.earlier.joint
        mixes = running.mixes(self._pools)
        self._pricing.surround(mixes, self._joint_prices)
        self._joint_prices = self._pricing.priced(self._pricing.joint, self._joint_prices).prices.rows
        return Beginning(mixes=mixes)

    def _settle(self, level: int) -> None:
        """Bring one level as low as the effort allows, and keep what it cannot be below."""
        is_cost = level == len(self._levels)
        least = 0 if is_cost else self._least[level]
        if not is_cost and self._incumbent.values[level] <= least:
            self._settled.pop(level, None)
            return
        self._effort.begin()
        goal = Goal(level=level, least=least, tolerated=self._tolerated(level))
        problem = self._problem_of(level)
        priced = self._pricing.priced(problem, self._start(level), enough=partial(self._enough, goal))
        bound = self._settled_soon(goal, priced)
        if bound is None:
            goal = replace(goal, tolerated=None)
            priced = self._widened(goal, problem, priced)
            bound = self._incumbent.improve(goal, priced)
        self._settled[level] = Settled(
            problem=problem, rows=priced.prices.rows, bound=bound, columns=column_counts(self._pools)
        )
        self._remember(goal, priced)

    def _widened(self, goal: Goal, problem: Problem, priced: Priced) -> Priced:
        """Return a problem with its prices for a thorough search, and with the mixes that columns lacked."""
        enough = partial(self._enough, goal)
        if self._is_closed:
            return self._pricing.repriced(problem, priced, enough=enough)
        priced = self._pricing.widened(problem, priced, enough=enough)
        priced = self._certified(goal, problem, priced)
        self._incumbent.weigh()
        return priced

    def _tolerated(self, level: int) -> float | None:
        """Return how far from its bound a level may stay; None where it has to be searched thoroughly."""
        if not self._running or self._nearness.is_exact:
            return None
        return self._running.tolerated(level)

    def _settled_soon(self, goal: Goal, priced: Priced) -> int | None:
        """Return a level's bound where the columns that there are and one core settle it; None elsewhere.

        They do where all are at their best then, where the answer is as near to the bound as that of a
        thorough search was, and in a rough search.
        """
        if not self._is_rough and goal.tolerated is None and priced.prices.bound > goal.least:
            return None
        found = self._incumbent
        found.improve_first(goal, priced)
        bound = found.improve(goal, priced, most_cores=1)
        if self._is_rough:
            return bound
        is_least = goal.level < len(self._levels) and found.values[goal.level] <= goal.least
        is_near = goal.tolerated is not None and found.is_near(goal, priced.problem, priced.prices.bound)
        return bound if is_least or is_near else None

    def _start(self, level: int) -> Floats:
        """Return prices to begin a level with, per unit of its value: known ones, or those of all levels."""
        capped = capped_levels(self._incumbent.excess(), level)
        known = self._running.earlier.rows(level, capped) if self._running else None
        if known is not None:
            return known
        weights = (*level_weights(self._pools, self._levels).tolist(), 1.0)
        caps = [weights[earlier] for earlier in capped]
        start: Floats = np.concatenate([self._joint_prices, caps]) / weights[level]
        return start

    def _enough(self, goal: Goal, problem: Phase) -> float:
        """Return what bound makes better prices needless: the answer is nearer to it than it has to be."""
        counted = problem.value(self._incumbent.best)
        return self._nearness.needless(goal, counted)

    def _certified(self, goal: Goal, problem: Problem, priced: Priced) -> Priced:
        """Return the same with the mixes that columns lacked, and note what no mix at all can beat."""
        for _ in range(MOST_ROUNDS - 1):
            missed = self._missed(goal.level, priced)
            if not missed:
                return priced
            self._pricing.add(missed, priced)
            priced = self._pricing.repriced(problem, priced, enough=partial(self._enough, goal))
        self._missed(goal.level, priced)
        return priced

    def _missed(self, level: int, priced: Priced) -> Mapping[int, Integers]:
        """Return the mixes that columns lack at some prices, and note what no mix at all can beat."""
        if self._certifier is None:
            return NOTHING_MISSED
        tolerance = self._nearness.certain(level, priced.prices.bound)
        values = self._incumbent.values
        return self._certifier.missed(self._pools, priced.problem, priced.prices, values, tolerance)

    def _remember(self, goal: Goal, priced: Priced) -> None:
        """Keep what a level was settled with, for another search and for what is said about columns."""
        problem, prices = priced.problem, priced.prices
        rows = prices.rows / problem.unit
        shared = len(self._resources.capacity)
        names = [self._levels.name(earlier) for earlier in problem.capped]
        self._level_prices[goal.level] = LevelPrices(
            level=self._levels.name(goal.level),
            rows=tuple(rows[:shared].tolist()),
            caps=tuple(zip(names, rows[shared:].tolist(), strict=True)),
            distance=self._distance(goal, priced) if goal.tolerated is None else goal.tolerated,
        )
        if goal.level == len(self._levels):
            self._rows = rows[:shared]

    def _distance(self, goal: Goal, priced: Priced) -> float:
        """Return how far from what prices prove a level stayed; none where that was for want of time."""
        counted = priced.problem.value(self._incumbent.best)
        distance = counted - max(0.0, priced.prices.bound)
        if self._effort.is_cut_by_clock or distance <= 0.0:
            return 0.0
        return distance / self._nearness.whole(goal.level, counted)

    def _problem_of(self, level: int) -> Problem:
        """Return what makes the level's problem, as things stand, over any columns."""
        return partial(
            phase_over,
            resources=self._resources,
            levels=self._levels,
            level=level,
            values=tuple(self._incumbent.values),
            excess=self._incumbent.excess(),
        )
