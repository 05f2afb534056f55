"""Placement as one mixed-integer program for HiGHS: a typical first formulation for an open-source solver.

It has an integer per variant, an integer per (bin, variant) flow, a shortfall per requirement, and slot rows
per bin (see `Bin`), and is solved level by level. Shortfalls are continuous, which is easier to solve. Those
of a level become integers when the level is settled, or before if rounding them up exceeds the gap; the level
is then solved once more. Each solve starts from the previous answer.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Final

from ortools.math_opt.python import mathopt

from controller.planning.engine.rooms import Hosts
from controller.planning.problem import (
    PER_MILLE,
    Bin,
    CountedReplicas,
    PlacementProblem,
    Proof,
    Solution,
    level_name,
)
from hack.fleets.score import COST, levels

MOST_PLACES: Final = 200_000
"""Maximum number of (bin, variant) pairs; with more, building the model alone takes minutes."""

_SHARE: Final = 0.5
_SLACK: Final = 1e-9
_ROUNDING: Final = 1e-3
_GAP: Final = 1e-6
"""Gap to the bound at which HiGHS stops."""

Terms = Sequence[tuple[mathopt.Variable, float]]


class TooLargeError(ValueError):
    """The problem is too large, or has features that the program lacks."""


def place(problem: PlacementProblem, *, seconds: float) -> Solution:
    """Return HiGHS's answer, or its best one when time is up.

    The gap of every level is relative to all that is wanted at it. Each level may take a share of the
    remaining seconds of wall-clock time.

    Raises TooLargeError for too many pairs, and if replicas are already running, pods have topology rules or
    nodes can be added, none of which the program models.
    """
    _check(problem)
    problem = replace(problem, bins=_exact_bins(problem))
    if sum(len(bin_.variants) for bin_ in problem.bins) > MOST_PLACES:
        raise TooLargeError(f"more than {MOST_PLACES} pairs of a variant and a bin")
    program, until = _Program(problem), time.monotonic() + seconds
    answer = _Answer(values={}, replicas=(0,) * len(problem.variants), value=0, bound=0)
    totals = levels(problem, answer.replicas)
    proofs: list[Proof] = []
    for name, terms in program.objectives().items():
        objective = _Objective(name=name, terms=terms, total=totals[name])
        better = program.best_answer(objective, answer, until)
        if better is None:
            break
        answer = better
        total = better.value if name == COST else totals[name]
        proofs.append(
            Proof(level=name, value=better.value, bound=min(better.value, better.bound), total=total)
        )
        program.settle(objective, better.value)
    return Solution(
        replicas=answer.replicas,
        placements=program.placements(answer),
        proofs=tuple(proofs),
    )


def _check(problem: PlacementProblem) -> None:
    """Raise TooLargeError for features that the program does not model."""
    if any(terms.is_topology_constrained or terms.pods > 1 for terms in problem.variants):
        raise TooLargeError("pods are spread, kept together or kept apart")
    if any(terms.bound_replicas or terms.current for terms in problem.variants):
        raise TooLargeError("something runs already")
    if any(growth.limit for growth in problem.growth):
        raise TooLargeError("nodes can be added")


def _exact_bins(problem: PlacementProblem) -> tuple[Bin, ...]:
    """Return bins whose slots decide exactly what fits: single nodes if sizes do not divide each other."""
    return tuple(
        part
        for bin_ in problem.bins
        for part in (
            [bin_] if bin_.is_divisible else [replace(bin_, nodes=(n,), sizes=(1,)) for n in bin_.nodes]
        )
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Objective:
    """What to minimize at one level."""

    name: str
    terms: Terms
    total: int

    @property
    def enough(self) -> float:
        """The absolute distance to the bound at which to stop."""
        return _GAP * self.total

    @property
    def unit(self) -> float:
        """The largest weight; the objective is divided by it, so that coefficients are at most 1."""
        return max((weight for _, weight in self.terms), default=0.0) or 1.0

    def scaled_sum(self) -> mathopt.LinearSum:
        """Return the objective, divided by `unit`."""
        return _sum([(variable, weight / self.unit) for variable, weight in self.terms])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """The result of one solve."""

    values: Mapping[mathopt.Variable, float]
    replicas: tuple[int, ...]
    value: int
    """Value of the level that was minimized."""

    bound: int


class _Program:
    """The model and its variables, indexed like the tuples of the problem."""

    def __init__(self, problem: PlacementProblem) -> None:
        self._problem = problem
        self._model = model = mathopt.Model()
        self._replicas = [model.add_integer_variable(lb=t.lower, ub=t.upper) for t in problem.variants]
        self._shortfall = [model.add_variable(lb=0.0, ub=PER_MILLE) for _ in problem.rows]
        self._placed = {
            (b, v): model.add_integer_variable(lb=0, ub=problem.variants[v].upper)
            for b, bin_ in enumerate(problem.bins)
            for v in bin_.variants
        }
        self._cover()
        for limit in problem.limits:
            used = _sum([(self._replicas[v], amount) for v, amount in limit.terms])
            model.add_linear_constraint(ub=limit.limit, expr=used)
        self._fit()

    def _cover(self) -> None:
        """Cover each requirement by replicas or a shortfall; no replicas are ready to cover continuity."""
        for row, short in zip(self._problem.rows, self._shortfall, strict=True):
            if row.requirement:
                covered = [
                    (self._replicas[v], PER_MILLE * min(amount, row.requirement) / row.requirement)
                    for v, amount in row.terms
                    if row.counted is CountedReplicas.ALL
                ]
                self._model.add_linear_constraint(lb=PER_MILLE, expr=_sum([*covered, (short, 1.0)]))

    def _fit(self) -> None:
        """Assign every replica to a bin, and limit the replicas of each bin by its slots."""
        variants = self._problem.variants
        homes: dict[int, list[tuple[mathopt.Variable, float]]] = defaultdict(list)
        for (_, v), flow in self._placed.items():
            homes[v].append((flow, 1.0))
        for v, terms in enumerate(variants):
            if terms.accelerators:
                balance = _sum([*homes[v], (self._replicas[v], -1.0)])
                self._model.add_linear_constraint(lb=0.0, ub=0.0, expr=balance)
        for b, bin_ in enumerate(self._problem.bins):
            for size in bin_.sizes:
                pods = [(self._placed[b, v], variants[v].accelerators // size) for v in bin_.variants]
                slots = sum(max(0, self._problem.free[node]) // size for node in bin_.nodes)
                self._model.add_linear_constraint(ub=slots, expr=_sum(pods))

    def objectives(self) -> dict[str, Terms]:
        """Return the terms to minimize at each level, the most important first."""
        rows = sorted(zip(self._problem.rows, self._shortfall, strict=True), key=lambda pair: pair[0].level)
        terms_of: dict[str, list[tuple[mathopt.Variable, float]]] = defaultdict(list)
        for row, short in rows:
            terms_of[level_name(*row.level)].append((short, float(row.weight)))
        prices = [float(terms.cost + terms.start_price) for terms in self._problem.variants]
        return {**terms_of, COST: list(zip(self._replicas, prices, strict=True))}

    def best_answer(self, objective: _Objective, begin: _Answer, until: float) -> _Answer | None:
        """Return the best answer of a level, or None if none was found in time.

        Its shortfalls become integers if rounding them up exceeds the gap.
        """
        answer = self._solve(objective, begin, until)
        if answer is None or objective.name == COST or answer.value - answer.bound <= objective.enough:
            return answer
        for variable, _ in objective.terms:
            variable.integer = True
        again = self._solve(objective, answer, until)
        if again is None:
            return answer
        best = again if again.value <= answer.value else answer
        return replace(best, bound=max(answer.bound, again.bound))

    def _solve(self, objective: _Objective, begin: _Answer, until: float) -> _Answer | None:
        """Return the answer, or None if none was found in time.

        HiGHS's own gap is relative to the value, which is too strict if little is unmet; so it may also stop
        at the absolute gap of the objective.
        """
        self._model.minimize(objective.scaled_sum())
        share = 1.0 if objective.name == COST else _SHARE
        seconds = max(0.0, until - time.monotonic()) * share
        parameters = mathopt.SolveParameters(
            time_limit=timedelta(seconds=seconds),
            relative_gap_tolerance=_GAP,
            absolute_gap_tolerance=objective.enough / objective.unit,
        )
        hints = [mathopt.SolutionHint(variable_values=dict(begin.values))] if begin.values else []
        result = mathopt.solve(
            self._model,
            mathopt.SolverType.HIGHS,
            params=parameters,
            model_params=mathopt.ModelSolveParameters(solution_hints=hints),
        )
        if not result.has_primal_feasible_solution():
            return None
        values = result.variable_values()
        replicas = tuple(round(values[variable]) for variable in self._replicas)
        bound = objective.unit * result.termination.objective_bounds.dual_bound
        return _Answer(
            values=values,
            replicas=replicas,
            value=levels(self._problem, replicas)[objective.name],
            bound=max(0, math.ceil(bound * (1 - _SLACK) - _ROUNDING)),
        )

    def settle(self, objective: _Objective, most: int) -> None:
        """Constrain later levels to keep the value that was reached."""
        for variable, _ in objective.terms:
            variable.integer = True
            if not most:
                variable.upper_bound = 0.0
        if most:
            self._model.add_linear_constraint(
                ub=most / objective.unit * (1 + _SLACK), expr=objective.scaled_sum()
            )

    def placements(self, answer: _Answer) -> tuple[tuple[int, int, int], ...]:
        """Return (variant, node, pods); placed largest first in each bin, where the slots guarantee room."""
        variants = self._problem.variants
        hosts = Hosts(self._problem.free, {b: bin_.nodes for b, bin_ in enumerate(self._problem.bins)})
        placed = Counter[tuple[int, int]]()
        for b, v in sorted(self._placed, key=lambda key: (-variants[key[1]].accelerators, key)):
            count = round(answer.values.get(self._placed[b, v], 0.0))
            for node, pods in hosts.take_many((b,), variants[v].accelerators, count):
                placed[v, node] += pods
        return tuple((v, node, pods) for (v, node), pods in sorted(placed.items()))


def _sum(terms: Terms) -> mathopt.LinearSum:
    return mathopt.fast_sum(weight * variable for variable, weight in terms)
