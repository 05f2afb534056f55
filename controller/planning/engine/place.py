"""Placement: from a problem in whole numbers to replicas, their nodes, and what is proven of them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.alternatives import alternatives
from controller.planning.engine.assign import assign
from controller.planning.engine.core import Selection
from controller.planning.engine.levels import Levels, proofs_of, whole_bound
from controller.planning.engine.options import options_of
from controller.planning.engine.patterns import MOST_OF_MODEL, first_patterns, is_allowed, joined
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.search import Search
from controller.planning.magnitude import check_magnitude
from controller.planning.problem import Solution
from controller.planning.proofs import proven, with_values

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cpsat import Limits
    from controller.planning.engine.assign import Assignment
    from controller.planning.engine.options import Options
    from controller.planning.engine.patterns import Patterns
    from controller.planning.engine.search import Answer
    from controller.planning.engine.shared import Floats, Integers
    from controller.planning.problem import PlacementProblem, Proof
    from controller.planning.warm_start import DualPrices

ALONE = 8
"""How many of its cheapest mixes are looked up for a model that has many."""

RETRIES = 2
"""How often a problem is solved again because replicas that were chosen found no place."""


def place(
    problem: PlacementProblem,
    *,
    limits: Limits,
    known: DualPrices | None = None,
) -> Solution:
    """Return a placement, and how good it is at each level over every replica mix.

    `known` prices are where the search for bounds begins. Raises NumbersTooLargeError.
    """
    return Engine(problem).place(limits, known=known)


def alone(problem: PlacementProblem) -> tuple[int, ...]:
    """Return the replicas that each model would have if it had everything to itself, and any nodes.

    Raises NumbersTooLargeError.
    """
    if not problem.variants:
        return ()
    check_magnitude(problem)
    anywhere = replace(
        problem,
        variants=tuple(replace(terms, bound=(), spread=None) for terms in problem.variants),
        bins=(),
        free=(),
        growth=(),
    )
    options, _ = options_of(anywhere, has_any_room=True)
    patterns, _ = _with_best_alone(options, first_patterns(options))
    return patterns.replicas(options, _best_alone(patterns))


class Engine:
    """A problem with its patterns. Raises NumbersTooLargeError.

    Mixes of a model are enumerated if they are no more than `most_of_model`; else some, others are generated.
    """

    def __init__(
        self, problem: PlacementProblem, *, retries: int = RETRIES, most_of_model: int = MOST_OF_MODEL
    ) -> None:
        check_magnitude(problem)
        self._problem = problem
        self._retries = retries
        self._most_of_model = most_of_model
        if problem.variants:
            self._options, self._shared = options_of(problem)
            patterns = first_patterns(self._options, most_of_model)
            self._patterns, self._alone_bound = _with_best_alone(self._options, patterns)
            added = (0,) * len(problem.growth)
            self._alone = Selection(patterns=_best_alone(self._patterns), added=added)

    def place(
        self,
        limits: Limits,
        *,
        known: DualPrices | None = None,
        start: Solution | None = None,
    ) -> Solution:
        """Return the best placement that the limits allow; at once, where there is room for everybody.

        The search begins with `start`, which has to be possible, by default with what runs.
        """
        if not self._problem.variants:
            return Solution(replicas=(), placements=())
        if self._is_least() and self._might_fit():
            wanted = self._patterns.replicas(self._options, self._alone.patterns)
            found = assign(self._problem, wanted, self._alone.added, limits)
            if found.replicas == wanted:
                free = np.zeros(len(self._options.count))
                return self._solution(self._alone_proofs(), found, None, free)
        return self._searched(limits, known, start)

    def _searched(self, limits: Limits, known: DualPrices | None, start: Solution | None) -> Solution:
        """Return what the search comes to."""
        begin = self._running() if start is None else self._within_options(start.replicas)
        self._patterns = self._with_mixes(begin, self._options.lower.tolist())
        search = Search(
            self._problem,
            self._options,
            self._shared,
            self._patterns,
            limits,
            known=known,
        )
        answer = search.run(self._start(begin, start.added if start else ()))
        self._patterns = answer.patterns
        chosen = self._patterns.replicas(self._options, answer.selection.patterns)
        found = assign(self._problem, chosen, answer.selection.added, limits)
        solution = self._solution(answer.proofs, found, answer.prices, answer.option_prices)
        has_all = all(count >= wanted for count, wanted in zip(found.replicas, chosen, strict=True))
        if has_all or not self._retries:
            return solution
        return self._retried(chosen, solution, answer)

    def _retried(self, chosen: Sequence[int], cut: Solution, answer: Answer) -> Solution:
        """Search again where no more replicas are allowed than found places; return the better answer.

        Rows that are not exact can leave replicas without a place although there are slots. The search begins
        with `cut`, which is what found places, and has the effort that is left.
        """
        variants = tuple(
            replace(terms, upper=max(terms.lower, count)) if count < wanted else terms
            for terms, count, wanted in zip(self._problem.variants, cut.replicas, chosen, strict=True)
        )
        tightened = replace(self._problem, variants=variants)
        engine = Engine(tightened, retries=self._retries - 1, most_of_model=self._most_of_model)
        other = engine.place(answer.left, known=answer.prices, start=cut)
        values = [proof.value for proof in other.proofs]
        if values >= [proof.value for proof in cut.proofs]:
            return cut
        return proven(other, with_values(answer.proofs, values))

    def _with_mixes(self, *mixes: Sequence[int]) -> Patterns:
        """Return the patterns with those of some replicas."""
        parts = [self._options.mixes(replicas) for replicas in mixes]
        models, options = (np.concatenate(part) for part in zip(*parts, strict=True))
        return joined(self._options, self._patterns, models, options)

    def _running(self) -> list[int]:
        """Return what runs on nodes, within what is allowed."""
        return self._within_options([min(t.current, len(t.bound)) for t in self._problem.variants])

    def _within_options(self, replicas: Sequence[int]) -> list[int]:
        """Return replicas that are not fewer than must stay, nor more than could have places."""
        top = self._options.top.tolist()
        return [
            max(terms.lower, min(count, most))
            for terms, count, most in zip(self._problem.variants, replicas, top, strict=True)
        ]

    def _start(self, running: Sequence[int], added: Sequence[int]) -> Selection:
        """Return what runs if limits allow it, else what must not be touched."""
        keeps = all(
            sum(amount * running[v] for v, amount in row.terms) <= limit
            for row, limit in zip(self._shared.limit_rows, self._shared.limits.tolist(), strict=True)
        )
        mixes = self._options.mixes(running)
        if not keeps or not is_allowed(self._options, *mixes).all():
            mixes, added = self._options.mixes(self._options.lower.tolist()), ()
        none = (0,) * len(self._problem.growth)
        return Selection(patterns=self._patterns.numbers(*mixes), added=tuple(added) or none)

    def _is_least(self) -> bool:
        """Tell whether no model is short of more than it has to be, by what is best for it alone."""
        short = self._patterns.short[:, self._alone.patterns]
        return bool((short <= self._patterns.least_short).all())

    def _might_fit(self) -> bool:
        """Tell whether limits are kept, and rows of slots suffice, by all that is best for each alone."""
        options, shared = self._options, self._shared
        chosen = np.zeros(len(options.count))
        chosen[self._patterns.options[self._alone.patterns]] = 1.0
        used = options.use_amount * chosen[options.use_option]
        rows = np.bincount(options.use_row, weights=used, minlength=len(shared.types) + len(shared.limits))
        types = len(shared.types)
        single = shared.allowed.sum(axis=1) == 1
        taken = rows[:types][single] @ shared.uses[single]
        # No nodes are added for it: what needs them is searched.
        return bool((taken <= shared.slots).all() and (rows[types:] <= shared.limits).all())

    def _alone_proofs(self) -> tuple[Proof, ...]:
        """Return the proofs of what is best for each model alone: where it has places nothing is better."""
        levels = Levels(self._options, self._shared, self._patterns)
        values = levels.values(self._patterns, self._alone)
        return proofs_of(levels, values, [*values[:-1], whole_bound(self._alone_bound)])

    def _solution(
        self, proofs: tuple[Proof, ...], found: Assignment, prices: DualPrices | None, option_prices: Floats
    ) -> Solution:
        """Return the answer; what found no place was taken off the replicas that proofs are of."""
        self._patterns = self._with_mixes(found.replicas)
        chosen = self._patterns.numbers(*self._options.mixes(found.replicas))
        levels = Levels(self._options, self._shared, self._patterns)
        values = levels.values(self._patterns, Selection(patterns=chosen, added=found.added))
        solution = Solution(
            replicas=found.replicas,
            placements=found.placements,
            grown=found.grown,
            added=found.added,
            alternatives=alternatives(self._options, self._patterns, chosen, option_prices),
            prices=prices,
        )
        return proven(solution, with_values(proofs, values))


def _with_best_alone(options: Options, patterns: Patterns) -> tuple[Patterns, float]:
    """Return the patterns with the mixes that are cheapest for each model alone that is not enumerated.

    Also returns what all models cannot cost less than, where none is short of more than it has to be.
    """
    models = np.flatnonzero(~patterns.is_enumerated)
    if not len(models):
        return patterns, float(patterns.least(_alone_cost(patterns)).sum())
    prices = Prices(
        options=options.cost.astype(np.float64),
        stages=np.full(options.level.shape, np.inf),
        least=patterns.least_short,
    )
    found = price(options, models, prices, patterns.least(_alone_cost(patterns))[models], most=ALONE)
    patterns = joined(options, patterns, found.model, found.options)
    least = patterns.least(_alone_cost(patterns))
    least[models] = np.minimum(least[models], found.bound)
    return patterns, float(least.sum())


def _alone_cost(patterns: Patterns) -> Floats:
    """Return what each pattern costs, infinite where more is short than has to be, stage by stage."""
    barred = np.zeros(len(patterns.model), dtype=np.bool_)
    for short in patterns.short:
        allowed = np.where(barred, np.inf, short)
        barred |= allowed > patterns.least(allowed)[patterns.model]
    return np.where(barred, np.inf, patterns.cost)


def _best_alone(patterns: Patterns) -> Integers:
    """Return the pattern of each model that is best alone, the least disruptive of equal ones, (models,)."""
    cost = _alone_cost(patterns)
    is_best = cost <= patterns.least(cost)[patterns.model]
    return patterns.best(np.where(is_best, patterns.disruption, np.inf))
