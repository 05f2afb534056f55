"""Minimise one objective after the other with CP-SAT, none at the expense of an earlier one.

One worker, a fixed seed and a limit in deterministic time make the answer reproducible; the limit by the
clock is a safety net. Each step starts from the solution of the last and may use half of the effort that is
left, so that a hard proof early on leaves something for the later ones.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ortools.sat.python import cp_model

if TYPE_CHECKING:
    from collections.abc import Sequence

    Terms = Sequence[tuple[cp_model.IntVar, int]]

SHARE_PER_STEP = 0.5

PROBE_GAP = 0.01
"""How near to the bound a probe must come: it need not prove anything."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """How much effort a whole sequence may take."""

    deterministic_seconds: float
    wall_seconds: float
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Objective:
    """A sum of non-negative terms to minimise."""

    name: str
    terms: Terms
    is_probe: bool = False
    """Only looks for a good start: what it reaches binds nobody."""

    def value(self, values: Sequence[int]) -> int:
        """Return the sum under an assignment."""
        return sum(coefficient * values[variable.index] for variable, coefficient in self.terms)


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """The best assignment found."""

    values: tuple[int, ...]
    """Of all variables, by index."""

    unproven: str
    """Name of the first objective whose minimum was not proven; empty when all were."""

    gap: float
    """Relative distance to the bound at that objective."""


class NoSolutionError(RuntimeError):
    """The effort was spent before there was any solution."""


def minimize_in_order(
    model: cp_model.CpModel, objectives: Sequence[Objective], hint: Terms, *, limits: Limits
) -> Outcome:
    """Return the lexicographic minimum, or the best that is known when the effort is spent.

    Raises NoSolutionError when the first step finds nothing.
    """
    values: tuple[int, ...] = ()
    unproven, gap = "", 0.0
    for objective in objectives:
        if not values or objective.value(values):  # zero is the least there is
            solver = _solver(limits, objective, is_last=objective is objectives[-1])
            found = _solve(model, objective, solver=solver, hint=hint)
            limits = _left(limits, solver)
            values = _better(found, values, objective)
            hint = [(model.get_int_var_from_proto_index(i), value) for i, value in enumerate(values)]
            if not (unproven or objective.is_probe) and solver.response_proto.status != cp_model.OPTIMAL:
                unproven, gap = objective.name, _gap(solver) if found else 1.0
        if not objective.is_probe:
            model.add(_sum(objective) <= objective.value(values))
    return Outcome(values=values, unproven=unproven, gap=gap)


def _better(found: tuple[int, ...], known: tuple[int, ...], objective: Objective) -> tuple[int, ...]:
    """Return the better of two assignments; a cut-off step may come back with less than it was given."""
    if not found and not known:
        raise NoSolutionError("the effort was spent before there was any solution")
    if not found or not known:
        return found or known
    return min(known, found, key=objective.value)


def _sum(objective: Objective) -> cp_model.LinearExprT:
    variables, coefficients = zip(*objective.terms, strict=True) if objective.terms else ((), ())
    return cp_model.LinearExpr.weighted_sum(variables, coefficients)


def _solver(limits: Limits, objective: Objective, *, is_last: bool) -> cp_model.CpSolver:
    share = 1.0 if is_last else SHARE_PER_STEP
    solver = cp_model.CpSolver()
    solver.parameters.num_workers = 1
    solver.parameters.random_seed = limits.seed
    solver.parameters.linearization_level = 2
    solver.parameters.cp_model_probing_level = 0
    solver.parameters.max_deterministic_time = limits.deterministic_seconds * share
    solver.parameters.max_time_in_seconds = limits.wall_seconds * share
    solver.parameters.relative_gap_limit = PROBE_GAP if objective.is_probe else 0.0
    solver.parameters.catch_sigint_signal = False
    return solver


def _left(limits: Limits, solver: cp_model.CpSolver) -> Limits:
    effort = limits.deterministic_seconds - solver.response_proto.deterministic_time
    return replace(
        limits,
        deterministic_seconds=max(0.0, effort),
        wall_seconds=max(0.0, limits.wall_seconds - solver.wall_time),
    )


def _solve(
    model: cp_model.CpModel, objective: Objective, *, solver: cp_model.CpSolver, hint: Terms
) -> tuple[int, ...]:
    """Return the values of all variables, or nothing when the effort was spent before a solution."""
    model.clear_hints()  # type: ignore[no-untyped-call]  # OR-Tools leaves this one without a return type
    for variable, value in hint:
        model.add_hint(variable, value)
    model.minimize(_sum(objective))
    status = solver.solve(model)
    if status in (cp_model.OPTIMAL, cp_model.FEASIBLE):
        return tuple(solver.response_proto.solution)
    if status == cp_model.UNKNOWN:
        return ()
    raise RuntimeError(f"the placement model is {solver.status_name(status)}: {model.validate()}")


def _gap(solver: cp_model.CpSolver) -> float:
    value, bound = solver.objective_value, solver.best_objective_bound
    return max(0.0, value - bound) / max(1.0, value)
