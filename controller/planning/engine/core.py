"""The core: a CP-SAT program over the patterns that can be part of a better solution.

Source: the core concept of Balas and Zemel (1980). A pattern whose reduced cost exceeds the distance between
the incumbent and the bound cannot be part of a better solution. If all other patterns are in the core, its
optimum is the optimum over all patterns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np

from controller.planning.cpsat import Effort, Program, Result, Terms
from controller.planning.engine.demands import Amount
from controller.planning.engine.fit import Fit
from controller.planning.engine.levels import Incumbent
from controller.planning.engine.master import Duals, PatternObjective
from controller.planning.engine.options import per_option
from controller.planning.engine.patterns import Patterns, PatternSelection
from controller.planning.engine.shared import Booleans, Integers

EXTRA = 1_500
"""Patterns of a core besides one per model; as many as models where these are more."""

MOST_PENALTIES = 2**61
"""Maximum sum of the penalties of excluded patterns: the objective must not exceed 64 bits."""

TIES = 1e-6
"""Reduced costs that differ by less than this share of the bound are considered equal."""


def core_of(
    patterns: Patterns, objective: PatternObjective, duals: Duals, always: Integers, *, distance: float
) -> tuple[Booleans, bool]:
    """Return which patterns are in the core, and whether these are all within the distance.

    The core contains the patterns `always`, the one with the least reduced cost of each model, and others
    whose reduced cost exceeds that by no more than the distance: `EXTRA`, or as many as models.
    """
    slack = duals.reduced - patterns.least(duals.reduced)[patterns.model]
    slack = np.where(np.isfinite(objective.value), slack, np.inf)
    close = (slack <= distance) & np.isfinite(slack)
    extra = max(EXTRA, len(patterns.start))
    most = len(patterns.start) + extra
    holds_all = int(close.sum()) <= most
    if not holds_all:
        # Of patterns with equal reduced cost, the cheaper ones leave more to other models. Where nothing is
        # short, dual prices do not express that.
        alike = np.floor(slack / (TIES * max(1.0, abs(duals.bound))))
        rank = np.lexsort((patterns.cost, alike))
        close = np.zeros_like(close)
        close[rank[: most - extra // 2]] = True
        # A model with only expensive patterns may need several of them for all pods to find places.
        by_model = np.lexsort((patterns.cost, alike, patterns.model))
        place = np.arange(len(by_model)) - patterns.start[patterns.model[by_model]]
        close[by_model[place <= extra // (2 * len(patterns.start))]] = True
        close &= np.isfinite(slack)
    close[always] = True
    close[patterns.best(duals.reduced)] = True
    return close, holds_all


class Core:
    """The integer program over some patterns: a 0-1 variable for each pattern of a model with several."""

    def __init__(
        self,
        incumbent: Incumbent,
        objective: PatternObjective,
        kept: Booleans,
        *,
        likely: Sequence[int] | None,
    ) -> None:
        """Build the program.

        `kept` (patterns,) tells whether a pattern is in the core; `likely` has about the replicas that
        variants will have, if the domains of spread pods may be fixed by them.
        """
        self._incumbent, self._objective = incumbent, objective
        self._options, self._shared, self._patterns = incumbent.options, incumbent.shared, incumbent.patterns
        self._index = np.flatnonzero(kept)
        self._model = self._patterns.model[self._index]
        counts = np.bincount(self._model, minlength=len(self._patterns.start))
        self._is_open = counts[self._model] > 1
        self._program = Program()
        self._one = self._program.constant()
        self._variable = np.full(len(self._index), self._one, dtype=np.int64)
        self._variable[self._is_open] = np.array(self._program.variables(int(self._is_open.sum())))
        self._growth = [self._program.variables(1, g.limit).start for g in incumbent.problem.growth]
        models, variables = self._model[self._is_open], self._variable[self._is_open]
        for own in np.split(variables, np.flatnonzero(np.diff(models)) + 1) if len(models) else ():
            self._program.exactly_one(own.tolist())
        self._place(likely)
        self._keep_limits()
        for short, cap in zip(objective.kept, objective.caps, strict=True):
            self._program.row(self._sum(short[self._index]), most=cap)
        terms = self._sum(self._values())
        terms += [
            (variable, int(price))
            for variable, price in zip(self._growth, objective.growth_price.tolist(), strict=True)
            if price
        ]
        self._program.minimize(terms)

    def solve(self, *, bound: float, gap: float, effort: Effort) -> tuple[PatternSelection | None, Result]:
        """Return the best selection found, or None, and the result of the search."""
        self._program.at_least(bound)
        incumbent = self._incumbent.selection
        is_chosen = np.isin(self._index, incumbent.patterns)
        variables, values = self._variable[self._is_open], is_chosen[self._is_open].astype(int)
        hints = dict(zip(variables.tolist(), values.tolist(), strict=True))
        hints |= dict(zip(self._growth, incumbent.added, strict=True))
        self._program.hint(hints)
        # In a program of many patterns and few rows, cuts cost more time than they save.
        result = self._program.solve(effort, absolute_gap=gap, has_cuts=False)
        return (self._selection(result.values) if result.values else None), result

    def _values(self) -> Integers:
        """Return the value of each pattern of the core, with a penalty for those that are excluded.

        Only patterns that are always in the core can be excluded ones, such as those of the incumbent. So the
        solver starts from a solution, and replaces them first: one costs more than all others can differ by.
        """
        value, models = self._objective.value[self._index], len(self._patterns.start)
        is_allowed = np.isfinite(value)
        most = np.zeros(models)
        np.maximum.at(most, self._model[is_allowed], value[is_allowed])
        grown = float(self._objective.growth_price @ self._shared.growth_limit)
        penalty = min(float(most.sum()) + grown + 1.0, MOST_PENALTIES / models)
        return np.where(is_allowed, value, penalty).astype(np.int64)

    def _place(self, likely: Sequence[int] | None) -> None:
        """Add the rows that give every new replica a place."""
        problem, options = self._incumbent.problem, self._options
        bound = np.array([*(len(terms.bound_replicas) for terms in problem.variants), 0], dtype=np.int64)
        chosen = self._patterns.options[self._index]
        variant = options.variant[chosen]
        count = options.count[chosen]
        more = np.where(variant >= 0, count - bound[variant], 0)
        terms_of: dict[int, Terms] = defaultdict(list)
        most: dict[int, int] = defaultdict(int)
        for row, column in np.argwhere(more > 0).tolist():
            v, amount = int(variant[row, column]), int(more[row, column])
            terms_of[v].append((int(self._variable[row]), amount))
            most[v] = max(most[v], amount)
        free = list(problem.free)
        leaving: dict[int, Counter[int]] = defaultdict(Counter)  # node -> core row -> accelerators
        for row, column in np.argwhere(more < 0).tolist():
            terms = problem.variants[int(variant[row, column])]
            for nodes in terms.bound_replicas[: -int(more[row, column])]:
                for node in nodes:
                    if self._is_open[row]:
                        leaving[node][row] += terms.accelerators
                    else:
                        free[node] += terms.accelerators
        new = {v: Amount(terms=terms, most=most[v]) for v, terms in terms_of.items()}
        fit = Fit(
            self._program,
            problem,
            self._shared.nodes,
            new,
            leaving={node: self._releasable(held) for node, held in leaving.items()},
            growth=self._growth,
            free=free,
            likely=likely,
        )
        self.fixes_domains = fit.fixes_domains
        self.is_exact = fit.is_exact and not self.fixes_domains
        """Whether the rows are exact: every solution can be placed, and every feasible placement is a
        solution.
        """

    def _releasable(self, held: Mapping[int, int]) -> Amount:
        """Return the accelerators that may become free on a node, given what each core row frees there.

        One pattern per model is chosen, so the maximum is the sum of each model's largest amount.
        """
        most: dict[int, int] = defaultdict(int)
        for row, accelerators in held.items():
            model = int(self._model[row])
            most[model] = max(most[model], accelerators)
        terms = [(int(self._variable[row]), accelerators) for row, accelerators in held.items()]
        return Amount(terms=terms, most=sum(most.values()))

    def _keep_limits(self) -> None:
        chosen = self._patterns.options[self._index]
        variant, count = self._options.variant[chosen], self._options.count[chosen]
        for row, limit in zip(self._shared.limit_rows, self._shared.limits.tolist(), strict=True):
            used = per_option(row, variant, count, len(self._incumbent.problem.variants)).sum(axis=1)
            self._program.row(self._sum(used), most=limit)

    def _sum(self, weights: Integers) -> Terms:
        """Return the sum of one weight per pattern of the core."""
        certain = int(weights[~self._is_open].sum())
        used = self._is_open & (weights != 0)
        terms: Terms = list(zip(self._variable[used].tolist(), weights[used].tolist(), strict=True))
        return [*terms, (self._one, certain)] if certain else terms

    def _selection(self, values: tuple[int, ...]) -> PatternSelection:
        """Return the patterns and the added nodes of a solution of the program."""
        solved = np.array(values, dtype=np.int64)
        return PatternSelection(
            patterns=self._index[solved[self._variable] == 1], added=tuple(values[g] for g in self._growth)
        )
