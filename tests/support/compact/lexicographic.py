"""Lexicographic minimization with CP-SAT: one objective after the other, earlier ones fixed.

One worker, a fixed seed and a deterministic time limit make the result reproducible; the wall-clock limit is
a safety net. Each step starts from the best assignment so far and may use half of the remaining effort, so
that a hard proof early on leaves effort for later objectives.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from controller.planning.cpsat import Effort

    Terms = Sequence[tuple[cp_model.IntVar, int]]

SHARE_PER_STEP = 0.5


class NoSolutionError(RuntimeError):
    """The effort was spent before any solution was found."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """A sum of non-negative terms to minimize."""

    name: str
    terms: Terms

    def value(self, values: Sequence[int]) -> int:
        """Return the value of the sum for an assignment."""
        return sum(coefficient * values[variable.index] for variable, coefficient in self.terms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Minimum:
    """The best assignment found."""

    values: tuple[int, ...]
    """Values of all variables, by index."""

    bounds: tuple[int, ...]
    """Lower bound of each objective, given the values of those before."""


def minimize_in_order(
    model: cp_model.CpModel,
    objectives: Sequence[Objective],
    *,
    valued: Callable[[tuple[int, ...]], tuple[int, ...]],
    effort: Effort,
) -> Minimum:
    """Return the lexicographic minimum, or the best known assignment when the effort is spent.

    `valued` returns an assignment with the true values of dependent variables, because the solver leaves
    those unconstrained by the current objective arbitrarily large.

    Raises NoSolutionError if the effort does not suffice for any assignment.
    """

    def in_order(values: tuple[int, ...]) -> list[int]:
        return [objective.value(values) for objective in objectives]

    first = _solve(model, _solver(effort, share=SHARE_PER_STEP))
    if not first:
        raise NoSolutionError("the effort was spent before there was any solution")
    values = valued(first)
    bounds: list[int] = []
    for index, objective in enumerate(objectives):
        bound = 0  # the trivial lower bound
        if objective.value(values):
            solver = _solver(effort, share=1.0 if objective is objectives[-1] else SHARE_PER_STEP)
            found, bound = _minimize(model, objective, solver=solver, hint=values)
            effort = _left(effort, solver)
            values = min(values, valued(found) if found else values, key=in_order)
        bounds.append(bound)
        for settled in objectives[: index + 1]:  # earlier objectives may have improved, too
            model.add(_sum(settled.terms) <= settled.value(values))
    return Minimum(values=values, bounds=tuple(bounds))


def _minimize(
    model: cp_model.CpModel,
    objective: Objective,
    *,
    solver: cp_model.CpSolver,
    hint: tuple[int, ...],
) -> tuple[tuple[int, ...], int]:
    """Return an assignment, or an empty one, and a lower bound of the objective."""
    model.minimize(_sum(objective.terms))
    _hint(model, hint)
    found = _solve(model, solver)
    return found, max(0, math.ceil(solver.best_objective_bound - 1e-6)) if found else 0


def _solve(model: cp_model.CpModel, solver: cp_model.CpSolver) -> tuple[int, ...]:
    """Return the values of all variables; empty if the effort was spent before a solution."""
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return tuple(solver.response_proto.solution)
    if status == cp_model.UNKNOWN:
        return ()
    raise RuntimeError(f"the placement model is {solver.status_name(status)}: {model.validate()}")


def _hint(model: cp_model.CpModel, values: Sequence[int]) -> None:
    """Set the solver's warm start to the given values."""
    model.clear_hints()  # type: ignore[no-untyped-call]  # OR-Tools leaves this one without a return type
    for index, value in enumerate(values):
        model.add_hint(model.get_int_var_from_proto_index(index), value)


def _sum(terms: Terms) -> cp_model.LinearExprT:
    variables, coefficients = zip(*terms, strict=True) if terms else ((), ())
    return cp_model.LinearExpr.weighted_sum(variables, coefficients)


def _solver(effort: Effort, *, share: float) -> cp_model.CpSolver:
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = effort.seed
    solver.parameters.linearization_level = 2
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.presolve_substitution_level = 0
    solver.parameters.max_deterministic_time = effort.deterministic_seconds * share
    solver.parameters.max_time_in_seconds = effort.wall_seconds * share
    solver.parameters.relative_gap_limit = 0.0
    solver.parameters.catch_sigint_signal = False
    return solver


def _left(effort: Effort, solver: cp_model.CpSolver) -> Effort:
    return replace(
        effort,
        deterministic_seconds=max(
            0.0, effort.deterministic_seconds - solver.response_proto.deterministic_time
        ),
        wall_seconds=max(0.0, effort.wall_seconds - solver.wall_time),
    )
