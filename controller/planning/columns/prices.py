"""Prices of what models share, and a bound with them: no answer beats each model alone at the prices.

For any prices the sum of each model's cheapest column, less what all slots, limits and caps would fetch,
bounds every answer from below (Lagrangian duality). The best prices are found by cutting planes: a small
linear program over the prices proposes, the columns answer. Proposals are drawn half-way to the best prices
so far, which keeps them from swinging (in-out separation, Ben-Ameur and Neto, 2007).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import inf
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from ortools.linear_solver import pywraplp

from controller.planning.columns.market import BLOCKS, spans_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats
    from controller.planning.columns.market import Answer, Market
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.resources import Resources


INWARD = 0.5
"""How far a proposal is drawn to the best prices so far."""

MOST_PROPOSALS = 80

MOST_TIMES_WORTH = 10.0
"""Above how many times the most that a replica is worth to anybody no price is proposed."""

TOLERANCE = 1e-4
"""Relative distance between the best bound and the proposals' promise at which the search ends."""


# The wide range of the numbers makes either of the two lose its footing now and then, CLP less often.
_FIRST_SOLVER = "CLP"
_SECOND_SOLVER = "GLOP"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """The best prices that were found, with the answer to them."""

    rows: Floats
    answer: Answer
    blends: tuple[Floats, ...] = ()
    """Per pool (n, w): the mixes of an answer that may be divided, whose value is the bound."""

    answers: tuple[Answer, ...] = ()
    """Those that the answer which may be divided is made of; without what each column costs."""

    weights: Floats = field(default_factory=lambda: np.ones((1, BLOCKS)))
    """(answers, blocks): how much of each is in it."""

    @property
    def bound(self) -> float:
        """The least that the objective can be, over the columns."""
        return self.answer.bound


def best_prices(
    market: Market,
    resources: Resources,
    phase: Phase,
    *,
    start: Floats | None = None,
    known: Sequence[Answer] = (),
    enough: float = inf,
    deadline_seconds: float = inf,
) -> Prices:
    """Return prices whose bound is near the best there is, or is enough; any would do for a valid one.

    What is `known` was answered with fewer columns: it still limits what prices can promise. The deadline,
    by the monotonic clock, is a safety net.
    """
    prices = np.zeros(len(phase.capacity)) if start is None else start
    best = Prices(rows=prices, answer=market.answer(prices))
    answers = [found for answer in known if (found := market.recalled(answer))]
    answers.append(_light(best.answer))
    scale = max(1.0, sum(float(spans_of(objective).sum()) for objective in phase.objectives))
    worth = market.worth()
    proposals = _Proposals(resources, phase, scale=scale, worth=worth)
    for answer in answers[:-1]:
        proposals.cut(answer)
    is_solved = False
    for _ in range(MOST_PROPOSALS):
        if best.bound >= enough or monotonic() > deadline_seconds:
            break
        proposals.cut(answers[-1])
        proposal = proposals.next()
        if proposal is None:
            proposals = _Proposals(resources, phase, scale=scale, worth=worth, solver=_SECOND_SOLVER)
            for answer in answers:
                proposals.cut(answer)
            proposal = proposals.next()
        if proposal is None:
            is_solved = False
            break
        is_solved = True
        if proposal.promise - best.bound <= TOLERANCE * max(1.0, abs(best.bound)):
            break
        prices = INWARD * best.rows + (1 - INWARD) * proposal.rows
        found = market.answer(prices)
        answers.append(_light(found))
        if found.bound > best.bound:
            best = Prices(rows=prices, answer=found)
    weights = proposals.weights() if is_solved else np.ones((1, BLOCKS))
    weighed = answers[: len(weights)] if is_solved else [_light(best.answer)]
    counts = weights.any(axis=1)
    return replace(
        best,
        blends=market.blends(weighed, weights),
        answers=tuple(weighed[index] for index in np.flatnonzero(counts).tolist()),
        weights=weights[counts],
    )


def _light(answer: Answer) -> Answer:
    """Return an answer without what each column costs, of which there are too many to keep for all prices."""
    return replace(answer, reduced=())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Proposal:
    rows: Floats
    promise: float


class _Proposals:
    """The linear program over the prices; all numbers are scaled to be near one."""

    def __init__(
        self,
        resources: Resources,
        phase: Phase,
        *,
        scale: float,
        worth: float,
        solver: str = _FIRST_SOLVER,
    ) -> None:
        self._unit = scale / BLOCKS
        self._size = np.maximum(phase.capacity, 1.0)
        self._solver = pywraplp.Solver.CreateSolver(solver)
        self._parameters = pywraplp.MPSolverParameters()
        # The program of before is solved already, but for the new rows: what begins anew only loses that.
        self._parameters.SetIntegerParam(self._parameters.PRESOLVE, self._parameters.PRESOLVE_OFF)
        infinity = self._solver.infinity()
        most = (MOST_TIMES_WORTH * worth * self._size / self._unit).tolist()
        self._prices = [self._solver.NumVar(0.0, limit, "") for limit in most]
        self._blocks = [self._solver.NumVar(-infinity, infinity, "") for _ in range(BLOCKS)]
        self._growths = [self._solver.NumVar(-infinity, 0.0, "") for _ in phase.growth_price]
        self._cuts: list[list[pywraplp.Constraint]] = []
        objective = self._solver.Objective()
        objective.SetMaximization()
        for price, weight in zip(self._prices, (phase.capacity / self._size).tolist(), strict=True):
            objective.SetCoefficient(price, -weight)
        for part in (*self._blocks, *self._growths):
            objective.SetCoefficient(part, 1.0)
        slots = resources.growth_slots * resources.growth_limit[:, None]
        paid = phase.growth_price * resources.growth_limit
        for growth, row, price in zip(self._growths, slots, paid.tolist(), strict=True):
            self._add(growth, price, -row)

    def cut(self, answer: Answer) -> None:
        """Promise no more than the columns answered."""
        answered = zip(self._blocks, answer.fixed.tolist(), answer.taken, strict=True)
        self._cuts.append([self._add(block, fixed, taken) for block, fixed, taken in answered])

    def weights(self) -> Floats:
        """Return how much of each answer is in the best divisible one, (answers, blocks)."""
        return np.array([[max(0.0, row.dual_value()) for row in rows] for rows in self._cuts])

    def next(self) -> _Proposal | None:
        """Return the prices that promise most; None when the numbers defy the solver."""
        if self._solver.Solve(self._parameters) != pywraplp.Solver.OPTIMAL:
            return None
        prices = np.maximum([price.solution_value() for price in self._prices], 0.0)
        return _Proposal(
            rows=prices * self._unit / self._size, promise=self._solver.Objective().Value() * self._unit
        )

    def _add(self, part: pywraplp.Variable, fixed: float, taken: Floats) -> pywraplp.Constraint:
        """Bound a part of the promise by an amount plus what is taken, at the prices."""
        row = self._solver.Constraint(-self._solver.infinity(), fixed / self._unit)
        row.SetCoefficient(part, 1.0)
        weights = taken / self._size[: len(taken)]
        for index in np.flatnonzero(weights).tolist():
            row.SetCoefficient(self._prices[index], -float(weights[index]))
        return row
