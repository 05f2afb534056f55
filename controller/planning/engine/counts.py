"""The integer program over replica counts, which settles the levels of a small fleet.

The bound over patterns is that of a linear program. Where few large replicas compete for few nodes, the
optimum can be far above it, and no core of patterns proves that. Here each variant has its number of replicas
as a variable: the program contains all mixes, and branching closes the gap (Land and Doig 1960, here by
CP-SAT). The rows for nodes and for the rules of pods are those of the core. With many models branching takes
too long, and their gaps are smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from controller.planning.cpsat import Effort, Program, Result, Terms
from controller.planning.engine.demands import Amount
from controller.planning.engine.fit import Fit
from controller.planning.engine.options import Options
from controller.planning.engine.shared import SharedRows, limit_of
from controller.planning.problem import (
    PER_MILLE,
    CountedReplicas,
    Level,
    PlacementProblem,
    Solution,
    per_mille_missing,
    provided_by,
)

MOST_COUNTED = 40
"""Models up to which levels are settled by counts. A variant without requirements is a model of its own."""

COUNTED_GAPS = {120: 5e-4, 200: 0.02}
"""Models up to which counts settle a level whose core leaves more than some gap, measured as `search.GAP`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Replicas:
    """The replicas of one variant in the program's variables."""

    bound_replicas: int
    """How many have a node."""

    removals: range
    """0-1 per replica that may be removed, in the order of removal."""

    new: Amount
    """How many more: a number, or of pods that are spread a 0-1 variable for each number."""

    def terms(self, one: int) -> Terms:
        """Return how many there are, as a sum of variables."""
        stay = [(one, self.bound_replicas)] if self.bound_replicas else []
        return [*stay, *((variable, -1) for variable in self.removals), *self.new.terms]

    def values(self, count: int) -> list[tuple[int, int]]:
        """Return variables and their values for a number of replicas."""
        more = count - self.bound_replicas
        removed = [(variable, int(position < -more)) for position, variable in enumerate(self.removals)]
        if len(self.new.terms) == 1:
            return [*removed, (self.new.terms[0][0], max(0, more))]
        return [*removed, *((variable, int(number == more)) for variable, number in self.new.terms)]

    def count(self, values: Sequence[int]) -> int:
        """Return the number of replicas in a solution."""
        removed = sum(values[variable] for variable in self.removals)
        return (
            self.bound_replicas
            - removed
            + sum(values[variable] * weight for variable, weight in self.new.terms)
        )


class Counts:
    """One level of a problem, with the levels before it as rows."""

    def __init__(
        self, problem: PlacementProblem, options: Options, shared: SharedRows, caps: Mapping[Level, int]
    ) -> None:
        """Write all rows; `caps` are what levels may come to at most."""
        self._problem = problem
        self._program = Program()
        self._one = self._program.constant()
        self._replicas = [
            self._variant(v, lower, top)
            for v, (lower, top) in enumerate(zip(options.lower.tolist(), options.top.tolist(), strict=True))
        ]
        self._terms = [replicas.terms(self._one) for replicas in self._replicas]
        self._growth = [self._program.variables(1, growth.limit).start for growth in problem.growth]
        self._short = [self._shortfall(row) for row in range(len(problem.rows))]
        for row in problem.limits:
            used = [(t, amount * w) for v, amount in row.terms for t, w in self._terms[v] if amount]
            self._program.row(_merge(used), most=limit_of(row, problem))
        for level, most in caps.items():
            self._program.row(self.level(level), most=most)
        self._place(shared)

    def level(self, level: Level) -> Terms:
        """Return the weighted shortfall of a level, in per mille."""
        rows = zip(self._problem.rows, self._short, strict=True)
        return [(short, row.weight) for row, short in rows if row.level == level]

    def cost(self, factor: int) -> Terms:
        """Return `factor` times the cost, and the disruption if `factor` is more than 1; add their rows."""
        summands: Terms = []
        for terms, count in zip(self._problem.variants, self._terms, strict=True):
            started = self._program.variables(1, terms.upper).start
            stopped = self._program.variables(1, terms.current).start
            self._program.row([*count, (started, -1), (stopped, 1)], least=terms.current, most=terms.current)
            size = max(1, terms.accelerators_per_replica) if factor > 1 else 0
            summands += [(v, w * terms.cost * factor) for v, w in count]
            summands += [
                (started, terms.start_price * factor + size),
                (stopped, terms.stop_price * factor + size),
            ]
        summands += [(v, g.price * factor) for v, g in zip(self._growth, self._problem.growth, strict=True)]
        return _merge(summands)

    def minimize(
        self, objective: Terms, begin: Solution, *, bound: float, effort: Effort
    ) -> tuple[Solution | None, Result]:
        """Return the best replicas and added nodes found, if any, and the solver's result.

        The search starts from `begin`; `bound` is a lower bound of the objective.
        """
        self._program.minimize(objective)
        self._program.at_least(bound)
        hints = dict(zip(self._growth, begin.added, strict=True))
        for replicas, count in zip(self._replicas, begin.replicas, strict=True):
            hints.update(replicas.values(count))
        for row, short in zip(self._problem.rows, self._short, strict=True):
            hints[short] = per_mille_missing(row.requirement, provided_by(self._problem, row, begin.replicas))
        self._program.hint(hints)
        result = self._program.solve(effort)
        if not result.values:
            return None, result
        solution = Solution(
            replicas=tuple(replicas.count(result.values) for replicas in self._replicas),
            placements=(),
            added=tuple(result.values[v] for v in self._growth),
        )
        return solution, result

    def _variant(self, v: int, lower: int, top: int) -> _Replicas:
        """Add the variables of a variant: replicas leave in order, and none is new unless all stay."""
        program, bound = self._program, len(self._problem.variants[v].bound_replicas)
        # `removals` has a 0-1 variable for each replica that may be removed: each frees its own nodes. New
        # replicas are alike, and a number is enough. Only rules on domains need to know which number it is:
        # what they require of each domain is not linear in it.
        removals = program.variables(max(0, bound - lower))
        most = max(0, top - bound)
        for earlier, later in pairwise(removals):
            program.row([(later, 1), (earlier, -1)], most=0)
        if self._problem.variants[v].spread is None:
            new = [(variable, 1) for variable in program.variables(int(most > 0), most)]
            if removals and new:
                program.row([*new, (removals.start, most)], most=most)
        else:
            new = [(variable, number) for number, variable in enumerate(program.variables(most), start=1)]
            program.row([*((variable, 1) for variable, _ in new), *((g, 1) for g in removals[:1])], most=1)
        replicas = _Replicas(bound_replicas=bound, removals=removals, new=Amount(terms=new, most=most))
        program.row(replicas.terms(self._one), least=lower, most=top)
        return replicas

    def _shortfall(self, number: int) -> int:
        """Add what a row is short of, in per mille of its requirement."""
        program, row = self._program, self._problem.rows[number]
        short = program.variables(1, PER_MILLE).start
        capacity: Terms = []
        for v, amount in row.terms:
            terms = self._terms[v]
            if row.counted is not CountedReplicas.ALL:
                counted = program.variables(1, self._problem.variants[v].most_counted(row.counted)).start
                program.row([(counted, 1), *((t, -w) for t, w in terms)], most=0)
                terms = [(counted, 1)]
            capacity += [(t, w * amount * PER_MILLE) for t, w in terms]
        program.row(_merge([*capacity, (short, row.requirement)]), least=PER_MILLE * row.requirement)
        return short

    def _place(self, shared: SharedRows) -> None:
        problem = self._problem
        freed: dict[int, Counter[int]] = {}
        for terms, replicas in zip(problem.variants, self._replicas, strict=True):
            for variable, nodes in zip(replicas.removals, terms.bound_replicas, strict=False):
                for node in nodes if terms.accelerators else ():
                    freed.setdefault(node, Counter())[variable] += terms.accelerators
        Fit(
            self._program,
            problem,
            shared.nodes,
            {v: replicas.new for v, replicas in enumerate(self._replicas)},
            leaving={n: Amount(terms=list(held.items()), most=held.total()) for n, held in freed.items()},
            growth=self._growth,
            free=problem.free,
        )


def _merge(terms: Terms) -> Terms:
    """Return a sum in which each variable stands once."""
    weights: Counter[int] = Counter()
    for variable, weight in terms:
        weights[variable] += weight
    return list(weights.items())
