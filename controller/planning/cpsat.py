"""The only access to CP-SAT; models are written directly into the protocol buffer, which is faster.

The module `cp_model`, which other programs use, imports pandas: that would take most of a solver's start.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ortools.sat.python.cp_model_helper import (
    CpModelProto,
    CpSatHelper,
    CpSolverStatus,
    SatParameters,
    SolveWrapper,
)

Terms = list[tuple[int, int]]
"""The (variable, coefficient) pairs of a linear sum."""

UNBOUNDED = 2**62
"""The value that stands for a missing bound of a row."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Effort:
    """The maximum effort of one solve.

    Deterministic time makes the result reproducible; wall time is a safety limit.
    """

    deterministic_seconds: float
    wall_seconds: float
    seed: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """The result of a search."""

    values: tuple[int, ...]
    """Values of all variables; empty if no solution was found."""

    bound: float
    """Lower bound of the objective."""

    is_optimal: bool
    deterministic_seconds: float


class Program:
    """A CP-SAT model: variables, constraints and one objective to minimize."""

    def __init__(self) -> None:
        self._proto = CpModelProto()
        self._most: list[int] = []

    def variables(self, count: int, most: int = 1) -> range:
        """Add integer variables from 0 to `most`, and return their indices."""
        for _ in range(count):
            self._proto.variables.add().domain.extend([0, most])
        self._most += [most] * count
        return range(len(self._most) - count, len(self._most))

    def most(self, variable: int) -> int:
        """Return the upper bound of a variable."""
        return self._most[variable]

    def exactly_one(self, variables: Sequence[int]) -> None:
        """Require exactly one of some 0-1 variables to be 1."""
        self._proto.constraints.add().exactly_one.literals.extend(list(variables))

    def constant(self) -> int:
        """Add a variable that is fixed to 1, and return its index."""
        self._proto.variables.add().domain.extend([1, 1])
        self._most.append(1)
        return len(self._most) - 1

    def row(
        self, terms: Terms, *, least: int = -UNBOUNDED, most: int = UNBOUNDED, only_if: int | None = None
    ) -> None:
        """Require a sum to lie between two bounds, always or only if a 0-1 variable is 1."""
        constraint = self._proto.constraints.add()
        if only_if is not None:
            constraint.enforcement_literal.append(only_if)
        constraint.linear.vars.extend([variable for variable, _ in terms])
        constraint.linear.coeffs.extend([weight for _, weight in terms])
        constraint.linear.domain.extend([least, most])

    def at_least(self, bound: float) -> None:
        """Exclude objective values below a bound that was summed in double precision, if it is finite.

        With a row over the terms of the objective instead, CP-SAT 9.15 proves wrong optimums.
        """
        if math.isfinite(bound):
            self._proto.objective.domain.extend([math.ceil(bound - 1e-9 * abs(bound) - 1e-6), UNBOUNDED])

    def switch(self, variable: int, on: int) -> None:
        """Require a variable to be 0 unless a 0-1 variable is 1."""
        constraint = self._proto.constraints.add()
        constraint.enforcement_literal.append(-on - 1)
        constraint.linear.vars.extend([variable])
        constraint.linear.coeffs.extend([1])
        constraint.linear.domain.extend([0, 0])

    def minimize(self, terms: Terms) -> None:
        """Set the objective to minimize."""
        self._proto.objective.vars.extend([variable for variable, _ in terms])
        self._proto.objective.coeffs.extend([weight for _, weight in terms])

    def hint(self, values: Mapping[int, int]) -> None:
        """Set the solution hint: the values of some variables."""
        self._proto.solution_hint.vars.extend(list(values))
        self._proto.solution_hint.values.extend(list(values.values()))

    def solve(self, effort: Effort, *, absolute_gap: float = 0.0, has_cuts: bool = True) -> Result:
        """Solve until the incumbent is within the gap of the bound, or the effort is spent.

        `has_cuts` tells whether to add cuts of integer programs to linear relaxations.
        Raises RuntimeError if CP-SAT finds the model invalid.
        """
        parameters = SatParameters()
        parameters.num_workers = 1
        parameters.random_seed = effort.seed
        parameters.linearization_level = 2
        # Level 0 is cheaper, but lets CP-SAT 9.15 prove wrong optimums.
        parameters.cp_model_probing_level = 1
        # Level 1 lets CP-SAT 9.15 prove wrong optimums, too, and is not faster.
        parameters.presolve_substitution_level = 0
        parameters.cut_level = 1 if has_cuts else 0
        # Its presolve uses more effort than a core of thousands of models has available, and finds nothing.
        parameters.find_big_linear_overlap = False
        parameters.max_deterministic_time = max(0.0, effort.deterministic_seconds)
        parameters.max_time_in_seconds = effort.wall_seconds
        parameters.absolute_gap_limit = absolute_gap
        parameters.relative_gap_limit = 0.0
        parameters.catch_sigint_signal = False
        solver = SolveWrapper()
        solver.set_parameters(parameters)
        response = solver.solve(self._proto)  # type: ignore[no-untyped-call]  # its stub has no types
        if response.status == CpSolverStatus.MODEL_INVALID:
            raise RuntimeError(f"the solver refuses the program: {CpSatHelper.validate_model(self._proto)}")
        has_solution = response.status in (CpSolverStatus.OPTIMAL, CpSolverStatus.FEASIBLE)
        return Result(
            values=tuple(response.solution) if has_solution else (),
            bound=response.best_objective_bound,
            is_optimal=response.status == CpSolverStatus.OPTIMAL,
            deterministic_seconds=response.deterministic_time,
        )
