"""Solve a placement problem: replicas, their nodes, and the bounds proven for them.

First each model's own optimum is computed, as if it were alone and nodes were unlimited. If all of them have
places together, nothing can be better, and no search is needed. Otherwise the search starts from the running
replicas and finds a mix for each model, level by level, and these get nodes. A mix that finds no place for
all of its replicas loses some; what the bounds prove is then stated for the replicas that have places.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter

import numpy as np

from controller.planning.cpsat import Effort
from controller.planning.engine.assign import assign
from controller.planning.engine.counts import COUNTED_GAPS, MOST_COUNTED
from controller.planning.engine.levels import Incumbent, Levels, proofs_of, whole_bound, with_values
from controller.planning.engine.options import Options, options_of
from controller.planning.engine.patterns import Patterns, PatternSelection, extend, first_patterns, is_allowed
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.search import Search
from controller.planning.engine.shared import Floats, Integers
from controller.planning.problem import (
    EXACT_LIMIT,
    PER_MILLE,
    GrowthTerms,
    LimitKind,
    NumbersTooLargeError,
    PlacementProblem,
    Proof,
    RowName,
    Solution,
    VariantTerms,
)

ALONE = 8
"""Number of cheapest mixes of a model alone that are among its first patterns."""


def place(problem: PlacementProblem, *, effort: Effort, closes_gaps: bool = True) -> Solution:
    """Return a placement, with a proof at each level over every replica mix.

    `closes_gaps` tells whether counts of replicas follow a core that leaves a gap: they seldom find a better
    solution. Raises NumbersTooLargeError.
    """
    return Engine(problem, closes_gaps=closes_gaps).place(effort)


def alone(problem: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas of each model's own optimum, with unlimited nodes and no other models.

    Quotas and budgets do not apply: most of them are shared with other models.

    Raises NumbersTooLargeError.
    """
    if not problem.variants:
        return ()
    check_magnitude(problem)
    anywhere = replace(
        problem,
        variants=tuple(replace(terms, bound_replicas=(), spread=None) for terms in problem.variants),
        bins=(),
        free=(),
        growth=(),
        limits=tuple(row for row in problem.limits if row.kind is LimitKind.CEILING),
    )
    options, _ = options_of(anywhere, has_any_room=True)
    patterns, _ = _with_best_alone(options, first_patterns(options))
    return patterns.replicas(options, _best_alone(patterns))


def check_magnitude(problem: PlacementProblem) -> None:
    """Check that all sums of a problem are exact in double precision.

    Raises NumbersTooLargeError, naming the largest contributor and a remedy.
    """
    upper = [terms.upper for terms in problem.variants]
    for row in problem.rows:
        reach = PER_MILLE * (row.requirement + sum(amount * upper[v] for v, amount in row.terms))
        if reach >= EXACT_LIMIT:
            raise NumbersTooLargeError(
                f"{row.name}: requirement and capacities sum up to {reach:.3g} per mille"
            )
    for largest in dearest(problem)[:1]:
        if isinstance(largest, GrowthTerms):
            what, remedy = f"price of up to {largest.limit} nodes", "price"
        else:
            what, remedy = f"cost of up to {largest.upper} replicas", "cost"
        raise NumbersTooLargeError(
            f"{largest.name}: the {what} is too large to compare exactly; lower its {remedy} or its maximum"
        )


def dearest(problem: PlacementProblem) -> list[VariantTerms | GrowthTerms]:
    """Return the variants and nodes to be added whose prices make the sum of all inexact, the largest first.

    Without them, the sum is exact. Usually there are none.
    """
    # Replicas stop from the current number, even if there are fewer pods.
    priced: list[tuple[int, VariantTerms | GrowthTerms]] = [
        ((terms.cost + terms.start_price) * terms.upper + terms.stop_price * terms.current, terms)
        for terms in problem.variants
    ]
    priced += [(growth.price * growth.limit, growth) for growth in problem.growth]
    total = sum(most for most, _ in priced)
    dearest_terms: list[VariantTerms | GrowthTerms] = []
    for most, terms in sorted(priced, key=itemgetter(0), reverse=True):
        if total < EXACT_LIMIT:
            break
        dearest_terms.append(terms)
        total -= most
    return dearest_terms


class Engine:
    """A problem with its patterns. Raises NumbersTooLargeError.

    Replica counts settle small problems if `has_counts`, and follow cores that leave gaps if `closes_gaps`.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        *,
        has_counts: bool = True,
        closes_gaps: bool = True,
    ) -> None:
        check_magnitude(problem)
        self._problem = problem
        self._has_counts, self._closes_gaps = has_counts, closes_gaps
        if problem.variants:
            self._options, self._shared = options_of(problem)
            self._levels = Levels(self._options, self._shared)
            patterns = first_patterns(self._options)
            self._patterns, self._alone_bound = _with_best_alone(self._options, patterns)
            added = (0,) * len(problem.growth)
            self._alone = PatternSelection(patterns=_best_alone(self._patterns), added=added)

    def place(self, effort: Effort) -> Solution:
        """Return the best placement within the effort, without a search if every model's own optimum fits."""
        if not self._problem.variants:
            return Solution(replicas=(), placements=())
        short = self._patterns.short[:, self._alone.patterns]
        # The sums of rows are cheap to check, and only necessary: `assign` decides.
        if (short <= self._patterns.least_short).all() and self._might_fit():
            unconstrained = self._patterns.replicas(self._options, self._alone.patterns)
            solution = assign(self._problem, unconstrained, self._alone.added, effort)
            if solution.replicas == unconstrained:
                return self._proven(self._alone_proofs(), solution, {})
        return self._search(effort)

    def _search(self, effort: Effort) -> Solution:
        running = self._start_replicas()
        self._patterns = self._with_mixes(running, self._options.lower.tolist())
        first = self._start(running)
        incumbent = Incumbent(self._problem, self._options, self._shared, self._patterns, first)
        models = len(self._options.members)
        gaps = (gap for most, gap in COUNTED_GAPS.items() if models <= most and self._closes_gaps)
        search = Search(
            incumbent,
            effort=effort,
            is_counted=self._has_counts and models <= MOST_COUNTED,
            counted_gap=next(gaps, math.inf),
        )
        proofs = search.run()
        self._patterns, selection = incumbent.patterns, incumbent.selection
        chosen = self._patterns.replicas(self._options, selection.patterns)
        solution = assign(self._problem, chosen, selection.added, search.remaining_effort)
        return self._proven(proofs, solution, search.prices)

    def _with_mixes(self, *mixes: Sequence[int]) -> Patterns:
        """Return the patterns extended by the mixes of some replica counts."""
        parts = [self._options.mixes(replicas) for replicas in mixes]
        models, options = (np.concatenate(part) for part in zip(*parts, strict=True))
        return extend(self._options, self._patterns, models, options)

    def _start_replicas(self) -> list[int]:
        """Return the bound replicas, clamped to those that must stay and those that could have places."""
        return [
            max(terms.lower, min(terms.current, len(terms.bound_replicas), most))
            for terms, most in zip(self._problem.variants, self._options.top.tolist(), strict=True)
        ]

    def _start(self, running: Sequence[int]) -> PatternSelection:
        """Return the running replicas if limits allow them, otherwise the replicas that must stay."""
        keeps = all(
            sum(amount * running[v] for v, amount in row.terms) <= limit
            for row, limit in zip(self._shared.limit_rows, self._shared.limits.tolist(), strict=True)
        )
        mixes = self._options.mixes(running)
        if not keeps or not is_allowed(self._options, *mixes).all():
            mixes = self._options.mixes(self._options.lower.tolist())
        none = (0,) * len(self._problem.growth)
        return PatternSelection(patterns=self._patterns.numbers(*mixes), added=none)

    def _might_fit(self) -> bool:
        """Return whether the optima of all models alone respect limits and slot rows."""
        options, shared = self._options, self._shared
        chosen = np.zeros(len(options.count))
        chosen[self._patterns.options[self._alone.patterns]] = 1.0
        used = options.use_amount * chosen[options.use_option]
        rows = np.bincount(options.use_row, weights=used, minlength=len(shared.types) + len(shared.limits))
        types = len(shared.types)
        single = shared.allowed.sum(axis=1) == 1
        amounts = rows[:types][single] @ shared.uses[single]
        # Added nodes are not considered: a placement that needs them is searched.
        return bool((amounts <= shared.slots).all() and (rows[types:] <= shared.limits).all())

    def _alone_proofs(self) -> tuple[Proof, ...]:
        """Return the proofs of the models' own optima: if all have places, nothing is better."""
        values = self._levels.values(self._patterns, self._alone)
        return proofs_of(self._levels, values, [*values[:-1], whole_bound(self._alone_bound)])

    def _proven(
        self, proofs: tuple[Proof, ...], solution: Solution, prices: Mapping[str, Mapping[RowName, float]]
    ) -> Solution:
        """Return a solution with its proofs; its replicas may be fewer than those of the proofs."""
        self._patterns = self._with_mixes(solution.replicas)
        chosen = self._patterns.numbers(*self._options.mixes(solution.replicas))
        values = self._levels.values(self._patterns, PatternSelection(patterns=chosen, added=solution.added))
        return replace(solution, proofs=with_values(proofs, values), prices=prices)


def _with_best_alone(options: Options, patterns: Patterns) -> tuple[Patterns, float]:
    """Return the patterns with the cheapest mixes of each model alone.

    The second value is a lower bound on the cost of all models at their least shortfalls.
    """
    prices = Prices(
        options=options.cost.astype(np.float64),
        stages=np.full(options.level.shape, np.inf),
        least=patterns.least_short,
    )
    priced = price(options, prices, patterns.least(_alone_cost(patterns)), most=ALONE)
    patterns = extend(options, patterns, priced.model, priced.options)
    return patterns, float(np.minimum(patterns.least(_alone_cost(patterns)), priced.bound).sum())


def _alone_cost(patterns: Patterns) -> Floats:
    """Return the cost of each pattern; infinite unless its shortfalls are lexicographically minimal."""
    barred = np.zeros(len(patterns.model), dtype=np.bool_)
    for short in patterns.short:
        allowed = np.where(barred, np.inf, short)
        barred |= allowed > patterns.least(allowed)[patterns.model]
    return np.where(barred, np.inf, patterns.cost)


def _best_alone(patterns: Patterns) -> Integers:
    """Return each model's best pattern alone, with ties broken by disruption, (models,)."""
    cost = _alone_cost(patterns)
    is_best = cost <= patterns.least(cost)[patterns.model]
    return patterns.best(np.where(is_best, patterns.disruption, np.inf))
