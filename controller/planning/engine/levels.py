"""The levels of the lexicographic objective, as problems over the patterns.

A level at which every model is at its own minimum excludes the patterns that are not; any other earlier level
is kept by a row over its sum. Cost comes last, and ties of cost are broken by disruption.

The incumbent is the best solution so far, by these levels. A primal heuristic tries the best mix of each
model at some prices, as far as there are places: at those of the LP solution these mixes use about the
available capacity. Replicas take turns by the level that they serve, so what does not fit is missing at the
least important levels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from controller.planning.engine.assign import Headroom, PlaceClaim, best_fit
from controller.planning.engine.master import Duals, Master, PatternObjective
from controller.planning.engine.options import NONE, Options
from controller.planning.engine.patterns import Patterns, PatternSelection, extend
from controller.planning.engine.shared import Floats, Integers, SharedRows
from controller.planning.problem import (
    COST,
    EXACT_LIMIT,
    PER_MILLE,
    CountedReplicas,
    PlacementProblem,
    Proof,
    Solution,
    Stage,
    level_name,
)

ABSOLUTE_ERROR = 1e-9
RELATIVE_ERROR = 1e-11
"""Numerical error of a bound, absolute and relative: a sum of up to several hundred thousand products."""


class Levels:
    """The levels of one problem, independent of its patterns; the one after the last shortfall is cost."""

    def __init__(self, options: Options, shared: SharedRows) -> None:
        self._options = options
        self._shared = shared
        self.cost = len(options.levels)
        """Index of the last level."""
        self.totals = total_values(options)
        """Value of each level, without cost, if nothing is served."""
        self.most_disruption, self._cost_factor = _cost_factor(options, shared)

    def name(self, level: int) -> str:
        """Return the name of a level."""
        return COST if level == self.cost else level_name(*self._options.levels[level])

    def factor(self, level: int) -> int:
        """Return the factor of a level's value in its objective."""
        return self._cost_factor if level == self.cost else 1

    def tie(self, level: int) -> int:
        """Return the maximum that disruption adds to a level's objective."""
        return min(self.most_disruption, self._cost_factor - 1) if level == self.cost else 0

    def values(self, patterns: Patterns, selection: PatternSelection) -> tuple[int, ...]:
        """Return the value of a selection at each level, cost last."""
        short = patterns.short[:, selection.patterns]
        values = [int(short[self._options.level == level].sum()) for level in range(self.cost)]
        prices = self._shared.growth_price.tolist()
        grown = sum(price * count for price, count in zip(prices, selection.added, strict=True))
        return (*values, int(patterns.cost[selection.patterns].sum()) + grown)


class Incumbent:
    """The incumbent of a search, with its patterns, and the levels that another solution must keep."""

    def __init__(
        self,
        problem: PlacementProblem,
        options: Options,
        shared: SharedRows,
        patterns: Patterns,
        selection: PatternSelection,
    ) -> None:
        self.problem = problem
        self.options = options
        self.shared = shared
        self.patterns = patterns
        self.selection = selection
        self.levels = Levels(options, shared)
        self.assume(range(0))

    @property
    def values(self) -> tuple[int, ...]:
        """The value of each level, cost last."""
        return self.levels.values(self.patterns, self.selection)

    def assume(self, easy: range) -> None:
        """Require the present values of earlier levels, and the minimum of `easy` ones."""
        self._kept, self._easy = self.values, easy

    @property
    def is_met(self) -> bool:
        """Whether the incumbent is at the minimum of all easy levels."""
        values = self.values
        return all(values[level] <= self.least(level) for level in self._easy)

    def least(self, level: int) -> int:
        """Return the sum of each model's least shortfall at a level; 0 for cost."""
        own = self.options.level == level
        return int(self.patterns.least_short[own].sum()) if level < self.levels.cost else 0

    def cap(self, level: int) -> int:
        """Return the value of an earlier level that another solution must not exceed."""
        return self.least(level) if level in self._easy else self._kept[level]

    def _levels_in_rows(self, level: int) -> list[int]:
        """Return the earlier levels whose sums are kept by rows."""
        return [earlier for earlier in range(level) if self.cap(earlier) > self.least(earlier)]

    def objective(self, level: int) -> PatternObjective:
        """Return the problem of a level over the present patterns, given the values of all earlier ones."""
        options, patterns, factor = self.options, self.patterns, self.levels.factor(level)
        is_cost = level == self.levels.cost
        ties = patterns.disruption if factor > 1 else 0
        value = (patterns.cost * factor + ties if is_cost else self._short(level)).astype(np.float64)
        kept = self._levels_in_rows(level)
        is_hard = np.isin(options.level, [earlier for earlier in range(level) if earlier not in kept])
        is_above = patterns.short > patterns.least_short[:, patterns.model]
        value[(is_hard[:, patterns.model] & is_above).any(axis=0)] = math.inf
        growth = self.shared.growth_price * (factor if is_cost else 0)
        return PatternObjective(
            value=value,
            kept=tuple(self._short(earlier) for earlier in kept),
            caps=tuple(self._kept[earlier] for earlier in kept),
            growth_price=growth.astype(np.float64),
        )

    def prices(self, level: int, duals: Duals) -> tuple[Floats, Floats]:
        """Return objective coefficients of options, and of shortfall by stage and model, at some duals."""
        options, factor = self.options, self.levels.factor(level)
        stages = np.zeros(options.level.shape)
        caps = dict(zip(self._levels_in_rows(level), duals.caps.tolist(), strict=True))
        for earlier in range(level):
            stages[options.level == earlier] = caps.get(earlier, math.inf)
        stages[options.level == level] = 1.0
        if level < self.levels.cost:
            return np.zeros(len(options.count)), stages
        ties = options.disruption if factor > 1 else 0
        return (options.cost * factor + ties).astype(np.float64), stages

    def _short(self, level: int) -> Integers:
        at = self.options.level[:, self.patterns.model] == level
        short: Integers = np.where(at, self.patterns.short, 0).sum(axis=0)
        return short

    def master(self, objective: PatternObjective) -> Master:
        """Return the restricted master of a problem."""
        return Master(self.options, self.shared, self.patterns, objective)

    def objective_value(
        self, objective: PatternObjective, selection: PatternSelection | None = None
    ) -> float:
        """Return the objective of a selection, by default the incumbent; infinite if it is excluded."""
        chosen = selection or self.selection
        added = np.array(chosen.added, dtype=np.float64)
        return float(objective.value[chosen.patterns].sum()) + float(objective.growth_price @ added)

    def take(self, objective: PatternObjective, candidate: PatternSelection) -> None:
        """Make a selection the incumbent if it is better, level by level, then by the objective."""

        def rank(selection: PatternSelection) -> tuple[tuple[int, ...], float]:
            return self.levels.values(self.patterns, selection), self.objective_value(objective, selection)

        if rank(candidate) < rank(self.selection):
            self.selection = candidate

    def extend(self, model: Integers, mixes: Integers) -> None:
        """Add patterns: models (mixes,), options (mixes, width)."""
        if not len(model):
            return
        old, held = self.patterns, self.selection.patterns
        self.patterns = extend(self.options, old, model, mixes)
        kept = self.patterns.numbers(old.model[held], old.options[held])
        self.selection = replace(self.selection, patterns=kept)

    def offer(self, level: int, replicas: Sequence[int], added: tuple[int, ...]) -> PatternObjective:
        """Add the patterns of a solution, keep it if it is better, and return the problem with them.

        A solution above the minimum of an easy level is not kept: the solver seldom repairs it.
        """
        mixes = self.options.mixes(replicas)
        self.extend(*mixes)
        objective = self.objective(level)
        selection = PatternSelection(patterns=self.patterns.numbers(*mixes), added=added)
        if math.isfinite(self.objective_value(objective, selection)):
            self.take(objective, selection)
        return objective

    def fill(self, level: int, prices: Floats, chosen: Integers) -> tuple[PatternObjective, Duals]:
        """Place some patterns (models,) and what fits beside them, and keep the result if it is better.

        Returns the problem with the resulting patterns, and its duals at the given prices.
        """
        replicas = self.patterns.replicas(self.options, chosen)
        rounded = round_down(self.problem, self.options, replicas)
        objective = self.offer(level, rounded.replicas, rounded.added)
        return objective, self.master(objective).duals(prices)


def whole_bound(bound: float) -> int:
    """Return the least integer value allowed by a bound that was summed in double precision."""
    return math.ceil(bound - ABSOLUTE_ERROR - RELATIVE_ERROR * abs(bound))


def total_values(options: Options) -> list[int]:
    """Return the value of each level if nothing is served."""
    totals = np.zeros(len(options.levels), dtype=np.int64)
    for required, stage, weight in zip(options.requirement, options.stage, options.weight, strict=True):
        (has,) = np.nonzero(required)
        np.add.at(totals, options.level[stage[has], has], PER_MILLE * weight[has])
    return [int(total) for total in totals]


def proofs_of(levels: Levels, values: Sequence[int], bounds: Sequence[int]) -> tuple[Proof, ...]:
    """Return the proof of each level, given the values of the earlier ones."""
    return tuple(
        Proof(level=levels.name(level), value=value, bound=min(bound, value), total=total)
        for level, (value, bound, total) in enumerate(
            zip(values, bounds, [*levels.totals, values[-1]], strict=True)
        )
    )


def with_values(proofs: Sequence[Proof], values: Sequence[int]) -> tuple[Proof, ...]:
    """Return the proofs applied to other values: bounds are void after the first level that is worse.

    A level with a better value only tightens the problems of later levels, so that their bounds hold.
    """
    made: list[Proof] = []
    holds = True
    for proof, value in zip(proofs, values, strict=True):
        bound = min(proof.bound, value) if holds else 0
        # The last level is cost, whose total is the value itself.
        total = value if len(made) == len(proofs) - 1 else proof.total
        made.append(replace(proof, value=value, bound=bound, total=total))
        holds = holds and value <= proof.value
    return tuple(made)


def _cost_factor(options: Options, shared: SharedRows) -> tuple[int, int]:
    """Return the maximum of disruption, and the factor of cost, which is over twice that.

    A bound on the combined objective then implies a bound on cost, whatever the disruption. If the numbers
    would become too large to be exact, the factor is 1 and disruption is ignored. A quarter of the limit
    leaves room for differences between sums, such as reduced costs.
    """
    disruption = int(np.maximum.reduceat(options.disruption[:-1], options.first).sum())
    cost = int(np.maximum.reduceat(options.cost[:-1], options.first).sum())
    cost += int((shared.growth_price * shared.growth_limit).sum())
    factor = 2 * (disruption + 1)
    return (disruption, factor) if factor <= EXACT_LIMIT // (4 * (cost + 1)) else (0, 1)


def round_down(problem: PlacementProblem, options: Options, replicas: Sequence[int]) -> Solution:
    """Return the replicas that limits allow and for which best-fit decreasing finds places."""
    stays = [min(count, least) for count, least in zip(replicas, options.lower.tolist(), strict=True)]
    claims = sorted(_claims(problem, options, replicas, stays))
    return best_fit(problem, stays, _within_limits(problem, stays, claims))


def _claims(
    problem: PlacementProblem, options: Options, replicas: Sequence[int], stays: Sequence[int]
) -> Iterator[PlaceClaim]:
    """Yield the replicas beyond those that stay: for minimums, for the present load, then for demand."""
    needed = [0] * len(stays)
    size = [terms.accelerators_per_replica for terms in problem.variants]
    for row in problem.rows:
        if row.counted is not CountedReplicas.ALL or row.stage not in (Stage.MINIMUM, Stage.LOAD):
            continue
        missing = row.requirement - sum(amount * (stays[v] + needed[v]) for v, amount in row.terms)
        # The smallest replicas are the most likely to find a place.
        for v, amount in sorted(row.terms, key=lambda term: size[term[0]]):
            if amount and missing > 0 and replicas[v] > stays[v] + needed[v]:
                more = min(replicas[v] - stays[v] - needed[v], -(-missing // amount))
                yield PlaceClaim(options.levels.index(row.level), v, more)
                needed[v] += more
                missing -= more * amount
    for model, level in enumerate(options.level[Stage.DEMAND].tolist()):
        turn = len(options.levels) if level == NONE else level
        for v in options.members[model]:
            yield PlaceClaim(turn, v, replicas[v] - stays[v] - needed[v])


def _within_limits(
    problem: PlacementProblem, stays: Sequence[int], claims: Sequence[PlaceClaim]
) -> Iterator[PlaceClaim]:
    """Yield the claims as far as limits allow, granting as many as remain to each in turn."""
    headroom = Headroom(problem, stays)
    for claim in claims:
        more = headroom.most(claim.variant, claim.replicas)
        headroom.take(claim.variant, more)
        yield claim._replace(replicas=more)
