"""The textbook model as a mixed-integer program for HiGHS: what one writes first, for a good open solver.

An integer per variant, an integer shortfall per requirement, slot rows per bin; one level after the other.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ortools.math_opt.python import mathopt

from controller.planning.fit import assign
from controller.planning.problem import PER_MILLE, PlacementProblem, Proof, Scope, Solution
from controller.planning.textbook import expanded
from hack.bench.placement.score import COST, levels

MOST_PLACES: Final = 200_000
"""Pairs of a variant and a bin; beyond, the model alone takes minutes to build."""

_SHARE: Final = 0.5
_SLACK: Final = 1e-9
_MOST_STRETCH: Final = 2.0


class _Clock:
    """So many seconds by the clock."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._began = seconds, time.monotonic()

    def left(self) -> float:
        """Return what is left of them, by the clock."""
        return max(0.0, self._seconds - self._elapsed())

    def _elapsed(self) -> float:
        return time.monotonic() - self._began


class _RaceClock(_Clock):
    """So many seconds of CPU: HiGHS knows the clock alone, so others' work on the core is allowed for."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self._began_cpu = time.process_time()

    def left(self) -> float:
        """Return by the clock what is left of CPU at the pace so far; in all no more than twice as much."""
        elapsed, spent = self._elapsed(), time.process_time() - self._began_cpu
        stretch = elapsed / spent if spent else 1.0
        return max(0.0, min((self._seconds - spent) * stretch, _MOST_STRETCH * self._seconds - elapsed))


class TooLargeError(ValueError):
    """The textbook model of this problem is beyond what can be tried."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Program:
    """The model and its variables, indexed as the problem's tuples are."""

    model: mathopt.Model
    replicas: list[mathopt.Variable]
    shortfall: list[mathopt.Variable]
    placed: dict[tuple[int, int], mathopt.Variable]


def place(problem: PlacementProblem, *, gap: float, seconds: float, is_race: bool = False) -> Solution:
    """Return HiGHS's answer within a gap at every level, or what it has when time is up.

    In a race the seconds are of CPU. Each level may take all that is left of them, and the first that is not
    proven ends it: what was spent until then is the least that the proof takes.

    Raises TooLargeError, also where something runs already or pods have rules: the model states neither.
    """
    problem = expanded(problem)
    if sum(len(bin_.variants) for bin_ in problem.bins) > MOST_PLACES:
        raise TooLargeError(f"more than {MOST_PLACES} pairs of a variant and a bin")
    if any(terms.is_choosy or terms.pods > 1 for terms in problem.variants):
        raise TooLargeError("pods are spread, kept together or kept apart")
    if any(terms.bound for terms in problem.variants):
        raise TooLargeError("something runs already")
    program = _program(problem)
    clock = _RaceClock(seconds) if is_race else _Clock(seconds)
    counts: tuple[int, ...] = (0,) * len(problem.variants)
    shares: dict[tuple[int, int], int] = {}
    proofs: list[Proof] = []
    wanted = levels(problem, counts)
    for name, terms in _objectives(problem, program).items():
        largest = max((abs(weight) for _, weight in terms), default=1)
        scaled = [(variable, weight / largest) for variable, weight in terms]
        solved = _solve(
            program.model,
            scaled,
            gap=gap,
            enough=gap * wanted[name] / largest,
            seconds=clock.left() * (1.0 if is_race or name == COST else _SHARE),
        )
        if solved is None:
            break
        values, bound = solved
        counts = tuple(round(values[variable]) for variable in program.replicas)
        shares = {key: round(values[variable]) for key, variable in program.placed.items()}
        reached = levels(problem, counts)[name]
        proofs.append(
            Proof(
                level=name,
                value=reached,
                bound=min(reached, round(bound * largest)),
                scope=Scope.EVERYTHING,
                total=reached if name == COST else wanted[name],
            )
        )
        if is_race and proofs[-1].improvable > gap:
            break
        _settle(program.model, scaled, reached / largest)
    unproven = next((proof for proof in proofs if proof.improvable > gap), None)
    return Solution(
        replicas=counts,
        placements=assign(problem, counts, shares),
        proofs=tuple(proofs),
        unproven=unproven.level if unproven else "",
        gap=unproven.gap if unproven else 0.0,
    )


def _program(problem: PlacementProblem) -> Program:
    model = mathopt.Model()
    replicas = [model.add_integer_variable(lb=t.lower, ub=t.upper) for t in problem.variants]
    shortfall = [model.add_integer_variable(lb=0, ub=PER_MILLE) for _ in problem.rows]
    placed = {
        (b, v): model.add_integer_variable(lb=0, ub=problem.variants[v].upper)
        for b, bin_ in enumerate(problem.bins)
        for v in bin_.variants
    }
    program = Program(model=model, replicas=replicas, shortfall=shortfall, placed=placed)
    for row, short in zip(problem.rows, shortfall, strict=True):
        covered = [
            (replicas[v], PER_MILLE * min(amount, row.requirement) / row.requirement)
            for v, amount in row.terms
        ]
        model.add_linear_constraint(lb=PER_MILLE, expr=_sum([*covered, (short, 1.0)]))
    for limit in problem.limits:
        model.add_linear_constraint(ub=limit.limit, expr=_sum([(replicas[v], a) for v, a in limit.terms]))
    _fit(problem, program)
    return program


def _fit(problem: PlacementProblem, program: Program) -> None:
    """Give every replica a slot, and no bin more of them than it has."""
    homes: dict[int, list[tuple[mathopt.Variable, float]]] = defaultdict(list)
    for (_, v), variable in program.placed.items():
        homes[v].append((variable, 1.0))
    for v, terms in enumerate(problem.variants):
        if terms.accelerators:
            program.model.add_linear_constraint(
                lb=0.0, ub=0.0, expr=_sum([*homes[v], (program.replicas[v], -1.0)])
            )
    for b, bin_ in enumerate(problem.bins):
        for size in bin_.sizes:
            taken = [
                (program.placed[b, v], problem.variants[v].accelerators // size)
                for v in bin_.variants
                if problem.variants[v].accelerators >= size
            ]
            slots = sum(max(0, problem.free[node]) // size for node in bin_.nodes)
            program.model.add_linear_constraint(ub=slots, expr=_sum(taken))


def _objectives(
    problem: PlacementProblem, program: Program
) -> Mapping[str, Sequence[tuple[mathopt.Variable, int]]]:
    """Return what to minimise, in order."""
    found: dict[str, list[tuple[mathopt.Variable, int]]] = {}
    nothing = tuple(terms.lower for terms in problem.variants)
    for name in levels(problem, nothing):
        found[name] = []
    for row, short in sorted(zip(problem.rows, program.shortfall, strict=True), key=lambda p: p[0].level):
        stage, priority = row.level
        found[f"{stage.name.lower()} of priority {priority}"].append((short, row.weight))
    found[COST] = [
        (count, terms.cost + terms.start_price)
        for count, terms in zip(program.replicas, problem.variants, strict=True)
    ]
    return found


def _solve(
    model: mathopt.Model,
    terms: Sequence[tuple[mathopt.Variable, float]],
    *,
    gap: float,
    enough: float,
    seconds: float,
) -> tuple[dict[mathopt.Variable, float], float] | None:
    """Return the values found and the bound, or None when there was no answer in time.

    Enough is a distance to the bound that a large relative gap may stand for where little is left over.
    """
    model.minimize(_sum(terms))
    parameters = mathopt.SolveParameters(
        time_limit=timedelta(seconds=seconds), relative_gap_tolerance=gap, absolute_gap_tolerance=enough
    )
    result = mathopt.solve(model, mathopt.SolverType.HIGHS, params=parameters)
    if not result.has_primal_feasible_solution():
        return None
    return result.variable_values(), result.termination.objective_bounds.dual_bound


def _settle(model: mathopt.Model, terms: Sequence[tuple[mathopt.Variable, float]], most: float) -> None:
    """Let no later level take back what was reached."""
    if most <= 0:
        for variable, _ in terms:
            variable.upper_bound = 0.0
    else:
        model.add_linear_constraint(ub=most * (1 + _SLACK), expr=_sum(terms))


def _sum(terms: Sequence[tuple[mathopt.Variable, float]]) -> mathopt.LinearSum:
    return mathopt.fast_sum(weight * variable for variable, weight in terms)
