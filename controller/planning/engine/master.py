"""The restricted master: dual prices of what models share, and the Lagrangian bound that they prove.

Source: Dantzig and Wolfe (1960); the bound at any prices is that of Geoffrion (1974) and Farley (1990). The
dual is solved by cutting planes over blocks of models, with in-out stabilisation (Ben-Ameur and Neto, 2007).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np
from ortools.linear_solver import pywraplp

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.engine.options import Options
    from controller.planning.engine.patterns import Patterns
    from controller.planning.engine.shared import Floats, Integers, Shared

MOST_BLOCKS = 64
"""Blocks of models that have a cut of their own in each round; one for each model where those are fewer."""

MOST_ROUNDS = 200
"""Of proposals for prices in one linear program at most."""

TOLERANCE = 1e-5
"""Relative distance between the bound and what the cuts still promise at which prices are the best."""

MOST_MILLISECONDS = 5_000
"""By the clock, of one linear program: a net, for a solver that cycles."""

SOLVERS = ("CLP", "GLOP")
"""For the linear programs; the second one where the first fails."""

LIGHT = 1e-3
"""Weight in the linear solution up to which a pattern is no part of it."""

INWARD = 0.3
"""How far proposed prices are drawn back towards the best known ones."""


@dataclass(frozen=True, kw_only=True)
class Objective:
    """What one problem over the patterns minimises, and which sums of shortfalls it keeps."""

    value: Floats
    """(patterns,): infinite where an earlier level forbids the pattern."""

    kept: tuple[Integers, ...]
    """Per kept level the shortfall of each pattern, (patterns,)."""

    caps: tuple[int, ...]
    """What each of those sums must not exceed."""

    growth_price: Floats
    """(growths,): what an added node counts for."""


@dataclass(frozen=True, kw_only=True)
class Duals:
    """Prices, and what they prove."""

    slots: Floats
    """(slot rows,): price of a slot."""

    limits: Floats
    """(limit rows,): price of a unit of a limit."""

    caps: Floats
    """(kept levels,): price of a unit of shortfall at a level that is kept."""

    bound: float
    """No choice of the patterns comes to less."""

    reduced: Floats
    """(patterns,): what each counts for and pays; infinite where it is forbidden."""

    option_prices: Floats
    """(options,): what each pays."""

    means: Mapping[int, Floats] = field(default_factory=dict)
    """Model -> (width,): mean option of each of its variants in the linear solution.

    For models that have a block of their own.
    """

    support: tuple[Integers, Integers] | None = None
    """Mixes that the linear solution combines: their models (mixes,) and options (mixes, width)."""

    @property
    def vector(self) -> Floats:
        """All prices, to begin with another time."""
        return np.concatenate([self.slots, self.limits, self.caps])


@dataclass(frozen=True, kw_only=True, slots=True)
class _Answer:
    """What the cheapest patterns at some prices come to."""

    chosen: Integers
    """(models,): the pattern of each model."""

    fixed: Floats
    """(blocks,): what they count for."""

    used: Floats
    """(blocks, rows): what they use of types, limits and kept levels."""


class Master:
    """The patterns of all models against what they share."""

    def __init__(self, options: Options, shared: Shared, patterns: Patterns, objective: Objective) -> None:
        self._options = options
        self._shared = shared
        self._patterns = patterns
        self._objective = objective
        self._capacity = np.concatenate([shared.slots, shared.limits, objective.caps]).astype(np.float64)

    @cached_property
    def _block(self) -> Integers:
        """(models,): block of each model; only solving needs them."""
        return _blocks(self._options, self._shared, self._patterns, self._objective)

    def duals(self, vector: Floats) -> Duals:
        """Return what some prices prove."""
        shared, objective, patterns = self._shared, self._objective, self._patterns
        rows, limits = len(shared.slots), len(shared.limits)
        slots, limit, caps = vector[:rows], vector[rows : rows + limits], vector[rows + limits :]
        option_prices = self._options.priced(np.concatenate([shared.type_prices(slots), limit]))
        reduced = objective.value + option_prices[patterns.options].sum(axis=1)
        for price, short in zip(caps.tolist(), objective.kept, strict=True):
            if price:
                reduced += price * short
        gain = objective.growth_price - shared.growth_slots @ slots
        bound = float(patterns.least(reduced).sum()) - float(self._capacity @ vector)
        bound += float((shared.growth_limit * np.minimum(gain, 0)).sum())
        return Duals(
            slots=slots, limits=limit, caps=caps, bound=bound, reduced=reduced, option_prices=option_prices
        )

    def solve(
        self,
        begin: Floats | None,
        *,
        enough: float,
        tolerance: float = TOLERANCE,
        deadline_seconds: float = math.inf,
    ) -> Duals:
        """Return the best prices; any that prove `enough` will do.

        After the deadline, by the monotonic clock, those will do that are the best so far.
        """
        best = self.duals(begin if begin is not None else np.zeros(len(self._capacity)))
        if not len(self._capacity):
            return best
        answers = [self._answer(best)]
        cuts = self._cuts(answers, SOLVERS[0])
        for _ in range(MOST_ROUNDS):
            if best.bound >= enough or monotonic() >= deadline_seconds:
                break
            proposal = cuts.propose()
            if proposal is None:  # numbers defy one solver now and then
                cuts = self._cuts(answers, SOLVERS[1])
                proposal = cuts.propose()
            if proposal is None:
                return best
            vector, promise = proposal
            if promise - best.bound <= tolerance * max(1.0, abs(best.bound)):
                weights = cuts.weights()
                means, support = self._means(answers, weights), self._support(answers, weights)
                return replace(best, means=means, support=support)
            found = self.duals(INWARD * best.vector + (1 - INWARD) * vector)
            answers.append(self._answer(found))
            cuts.add(answers[-1])
            if found.bound > best.bound:
                best = found
        return best

    def _means(self, answers: Sequence[_Answer], weights: Floats) -> Mapping[int, Floats]:
        """Return the mean options of models that are a block by themselves; weights are (answers, blocks)."""
        alone = np.flatnonzero(np.bincount(self._block)[self._block] == 1)
        mixes = np.array([self._patterns.options[answer.chosen[alone]] for answer in answers])
        own = weights[:, self._block[alone]]
        means = (own[:, :, None] * mixes).sum(axis=0) / np.maximum(own.sum(axis=0), 1e-9)[:, None]
        return {
            model: mean
            for model, mean, total in zip(alone.tolist(), means, own.sum(axis=0).tolist(), strict=True)
            if total > 0.5  # noqa: PLR2004 (the weights of a block sum up to 1)
        }

    def _support(self, answers: Sequence[_Answer], weights: Floats) -> tuple[Integers, Integers]:
        """Return the mixes that the linear solution combines; weights are (answers, blocks)."""
        parts = [
            answer.chosen[own[self._block] > LIGHT] for answer, own in zip(answers, weights, strict=True)
        ]
        found = np.unique(np.concatenate(parts))
        return self._patterns.model[found], self._patterns.options[found]

    def _cuts(self, answers: Sequence[_Answer], solver: str) -> _Cuts:
        """Return the linear program of a solver with the cuts of all answers so far."""
        cuts = _Cuts(
            self._shared,
            self._objective,
            capacity=self._capacity,
            block=self._block,
            span=self._spans(),
            solver=solver,
        )
        for answer in answers:
            cuts.add(answer)
        return cuts

    def _spans(self) -> Floats:
        """Return by how much the patterns of each model differ, (models,)."""
        return spans(self._patterns, self._objective.value, self._objective)

    def _answer(self, duals: Duals) -> _Answer:
        """Return what the cheapest patterns count for, and what they use of each row, by block."""
        patterns, options, blocks = self._patterns, self._options, int(self._block.max()) + 1
        chosen = patterns.best(duals.reduced)
        counted = self._objective.value[chosen]
        fixed = np.bincount(self._block, weights=counted, minlength=blocks).astype(np.float64)
        block_of = np.full(len(options.count), -1, dtype=np.int64)
        block_of[patterns.options[chosen]] = self._block[:, None]
        block_of[-1] = -1
        where = block_of[options.use_option]
        used = where >= 0
        rows = len(self._shared.types) + len(self._shared.limits)
        at = where[used] * rows + options.use_row[used]
        taken = np.bincount(at, weights=options.use_amount[used], minlength=blocks * rows)
        caps = [
            np.bincount(self._block, weights=short[chosen].astype(np.float64), minlength=blocks)
            for short in self._objective.kept
        ]
        used_by_block = np.concatenate([taken.reshape(blocks, rows), *(cap[:, None] for cap in caps)], axis=1)
        return _Answer(chosen=chosen, fixed=fixed, used=used_by_block)


def _blocks(options: Options, shared: Shared, patterns: Patterns, objective: Objective) -> Integers:
    """Return the block of each model: a few have one for themselves, the others share.

    These are the models that can change the objective most, and those that can use most accelerators.
    """
    models = len(options.members)
    if models <= MOST_BLOCKS:
        return np.arange(models)
    accelerators = [kind.total for kind in shared.types] + [0] * len(shared.limits)
    used = options.priced(np.array(accelerators, dtype=np.float64))[patterns.options].sum(axis=1)
    orders = [
        np.argsort(-spans(patterns, value, objective), kind="stable") for value in (objective.value, used)
    ]
    first = np.unique(np.concatenate([order[: MOST_BLOCKS // 4] for order in orders]))
    block = np.empty(models, dtype=np.int64)
    others = np.setdiff1d(np.arange(models), first)
    block[first] = np.arange(len(first))
    block[others] = len(first) + np.arange(len(others)) % (MOST_BLOCKS - len(first))
    return block


def spans(patterns: Patterns, value: Floats, objective: Objective) -> Floats:
    """Return by how much a value differs among the allowed patterns of each model, (models,)."""
    allowed = np.isfinite(objective.value)
    most = np.maximum.reduceat(np.where(allowed, value, -np.inf), patterns.start)
    least: Floats = patterns.least(np.where(allowed, value, np.inf))
    return most - least


class _Cuts:
    """The linear program over the prices, in numbers near one.

    Maximise what the blocks of models and the growths come to, less what capacities are worth. A unit of a
    type pays no more than in any bin that it may go to.
    """

    def __init__(
        self,
        shared: Shared,
        objective: Objective,
        *,
        capacity: Floats,
        block: Integers,
        span: Floats,
        solver: str,
    ) -> None:
        """Begin without cuts.

        `capacity` (rows,) is that of slots, limits and kept levels; `block` (models,) is the block of each
        model, `span` (models,) by how much its patterns differ; `solver` is a name that OR-Tools knows.
        """
        self._shared = shared
        self._solver = pywraplp.Solver.CreateSolver(solver)
        self._solver.SetTimeLimit(MOST_MILLISECONDS)
        self._parameters = pywraplp.MPSolverParameters()
        # Each program is the one before with more rows: begin with its basis.
        self._parameters.SetIntegerParam(self._parameters.PRESOLVE, self._parameters.PRESOLVE_OFF)
        infinity = self._solver.infinity()
        worth = max(1.0, float(span.max(initial=0.0)))
        scale = max(1.0, float(span.sum()) / (int(block.max()) + 1))
        self._unit = scale
        self._size = np.maximum(capacity, 1.0)
        # The last unit of a capacity is worth at most `worth`; prices are per whole capacity.
        self._prices = [self._solver.NumVar(0.0, float(size * worth / scale), "") for size in self._size]
        self._types = [self._solver.NumVar(0.0, infinity, "") for _ in shared.types]
        self._blocks = [self._solver.NumVar(-infinity, infinity, "") for _ in range(int(block.max()) + 1)]
        goal = self._solver.Objective()
        goal.SetMaximization()
        for price, size, most in zip(self._prices, self._size.tolist(), capacity.tolist(), strict=True):
            goal.SetCoefficient(price, -most / size)
        for part in self._blocks:
            goal.SetCoefficient(part, 1.0)
        self._rows: list[list[pywraplp.Constraint]] = []
        self._keep_types(shared)
        for g, most in enumerate(shared.growth_limit.tolist()):
            gain = self._solver.NumVar(-infinity, 0.0, "")
            goal.SetCoefficient(gain, 1.0)
            row = self._solver.Constraint(-infinity, float(most * objective.growth_price[g]) / self._unit)
            row.SetCoefficient(gain, 1.0)
            for index in np.flatnonzero(shared.growth_slots[g]).tolist():
                slots = float(most * shared.growth_slots[g, index])
                row.SetCoefficient(self._prices[index], slots / self._size[index])

    def _keep_types(self, shared: Shared) -> None:
        """Let a unit of a type pay at most what its slots do in any of its bins, nothing without a bin."""
        row_bin = shared.nodes.row_bin
        for index, kind in enumerate(shared.types):
            for bin_ in kind.bins:
                row = self._solver.Constraint(-self._solver.infinity(), 0.0)
                row.SetCoefficient(self._types[index], 1.0)
                for slot in np.flatnonzero((row_bin == bin_) & (shared.uses[index] > 0)).tolist():
                    row.SetCoefficient(
                        self._prices[slot], -float(shared.uses[index, slot] / self._size[slot])
                    )
            if not kind.bins:
                self._types[index].SetUb(0.0)

    def add(self, answer: _Answer) -> None:
        """Let each block promise no more than its answer counts for and pays."""
        self._rows.append([])
        types, slots = len(self._types), len(self._shared.slots)
        sizes = self._size[slots:]
        for block, (amount, used) in enumerate(zip(answer.fixed.tolist(), answer.used, strict=True)):
            row = self._solver.Constraint(-self._solver.infinity(), amount / self._unit)
            self._rows[-1].append(row)
            row.SetCoefficient(self._blocks[block], 1.0)
            for index in np.flatnonzero(used).tolist():
                if index < types:
                    row.SetCoefficient(self._types[index], -float(used[index]))
                else:
                    price = self._prices[slots + index - types]
                    row.SetCoefficient(price, -float(used[index] / sizes[index - types]))

    def weights(self) -> Floats:
        """Return the weight of each answer in the linear solution, (answers, blocks)."""
        return np.array([[max(0.0, row.dual_value()) for row in rows] for rows in self._rows])

    def propose(self) -> tuple[Floats, float] | None:
        """Return the prices that promise most, and the promise; None where the solver fails."""
        if self._solver.Solve(self._parameters) != pywraplp.Solver.OPTIMAL:
            return None
        prices = np.array([price.solution_value() for price in self._prices])
        promise = self._solver.Objective().Value() * self._unit
        return np.maximum(prices, 0.0) * self._unit / self._size, promise
