"""The restricted master: dual prices of the rows that models share, and their Lagrangian bound.

Source: Dantzig and Wolfe (1960); the bound at any prices is that of Geoffrion (1974) and Farley (1990). The
dual is solved by cutting planes over blocks of models, with in-out stabilization (Ben-Ameur and Neto, 2007).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from time import monotonic

import numpy as np
from ortools.linear_solver import pywraplp

from controller.planning.engine.options import Options, sum_over_mixes
from controller.planning.engine.patterns import Patterns
from controller.planning.engine.shared import Floats, Integers, SharedRows

MOST_BLOCKS = 64
"""The maximum number of model blocks, each with its own cut per round; with fewer models, one per model."""

MOST_ROUNDS = 100
"""The maximum number of rounds in one solve."""

TOLERANCE = 1e-5
"""Relative gap between the bound and the cutting-plane model at which prices are considered optimal."""

MOST_MILLISECONDS = 5_000
"""Wall time limit of one linear program, in milliseconds: a safety net against a cycling solver."""

SOLVERS = ("CLP", "GLOP")
"""LP solvers; the second is used if the first fails."""

LEAST_WEIGHT = 1e-3
"""Weight in the LP solution up to which a pattern is ignored."""

INWARD = 0.3
"""Share by which the prices of a round are drawn towards the best known ones."""


@dataclass(frozen=True, kw_only=True)
class PatternObjective:
    """The objective of one problem over the patterns, and the sums of shortfalls that it keeps."""

    value: Floats
    """(patterns,): the value of each; infinite where an earlier level excludes the pattern."""

    kept: tuple[Integers, ...]
    """(patterns,) per kept level: the shortfall of each pattern."""

    caps: tuple[int, ...]
    """The upper bound of each of these sums."""

    growth_price: Floats
    """(growths,): the objective coefficient of an added node."""


@dataclass(frozen=True, kw_only=True)
class Duals:
    """Dual prices, and the bound they prove."""

    vector: Floats
    """(slot rows + limit rows + kept levels,): the price of a slot, of a unit of a limit, of shortfall."""

    caps: Floats
    """(kept levels,): the price of shortfall, the last part of `vector`."""

    bound: float
    """Lower bound over all choices of the patterns."""

    reduced: Floats
    """(patterns,): reduced costs; infinite where a pattern is excluded."""

    option_prices: Floats
    """(options,): what each option pays at these prices."""

    means: Mapping[int, Floats] = field(default_factory=dict)
    """Model -> (width,): the mean option of each of its variants in the LP solution.

    Only models that form a block of their own have one.
    """

    support: tuple[Integers, Integers] | None = None
    """Mixes that the LP solution combines: their models (mixes,) and options (mixes, width)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Proposal:
    """The cheapest patterns at some prices, aggregated."""

    chosen: Integers
    """(models,): the pattern of each model."""

    fixed: Floats
    """(blocks,): their value."""

    used: Floats
    """(blocks, rows): their use of types, limits and kept levels."""


class Master:
    """The patterns of all models, and the rows that they share."""

    def __init__(
        self, options: Options, shared: SharedRows, patterns: Patterns, objective: PatternObjective
    ) -> None:
        self._options = options
        self._shared = shared
        self._patterns = patterns
        self._objective = objective
        self._capacity = np.concatenate([shared.slots, shared.limits, objective.caps]).astype(np.float64)

    @cached_property
    def _block(self) -> Integers:
        """(models,): the block of each model; computed only when solving."""
        return _blocks(self._options, self._shared, self._patterns, self._objective)

    def duals(self, vector: Floats) -> Duals:
        """Return the bound and the reduced costs at some prices."""
        shared, objective, patterns = self._shared, self._objective, self._patterns
        rows, limits = len(shared.slots), len(shared.limits)
        slots, caps = vector[:rows], vector[rows + limits :]
        of_rows = np.concatenate([shared.type_prices(slots), vector[rows : rows + limits]])
        option_prices = self._options.prices(of_rows)
        reduced = objective.value + sum_over_mixes(option_prices, patterns.options)
        for price, short in zip(caps.tolist(), objective.kept, strict=True):
            if price:
                reduced += price * short
        gain = objective.growth_price - shared.growth_slots @ slots
        bound = float(patterns.least(reduced).sum()) - float(self._capacity @ vector)
        bound += float((shared.growth_limit * np.minimum(gain, 0)).sum())
        return Duals(vector=vector, caps=caps, bound=bound, reduced=reduced, option_prices=option_prices)

    def solve(self, begin: Floats | None, *, enough: float, deadline_seconds: float) -> Duals:
        """Return the best prices, or any that prove a bound of `enough`.

        After the deadline, on the monotonic clock, the best prices so far are returned.
        """
        best = self.duals(begin if begin is not None else np.zeros(len(self._capacity)))
        if not len(self._capacity):
            return best
        proposals = [self._proposal(best)]
        cuts = self._cuts(proposals, SOLVERS[0])
        for _ in range(MOST_ROUNDS):
            if best.bound >= enough or monotonic() >= deadline_seconds:
                break
            solved = cuts.maximize()
            if solved is None:  # an LP solver fails on some numbers now and then
                cuts = self._cuts(proposals, SOLVERS[1])
                solved = cuts.maximize()
            if solved is None:
                return best
            vector, promise = solved
            if promise - best.bound <= TOLERANCE * max(1.0, abs(best.bound)):
                weights = cuts.weights()
                means, support = self._means(proposals, weights), self._support(proposals, weights)
                return replace(best, means=means, support=support)
            duals = self.duals(INWARD * best.vector + (1 - INWARD) * vector)
            proposals.append(self._proposal(duals))
            cuts.add(proposals[-1])
            if duals.bound > best.bound:
                best = duals
        return best

    def _means(self, proposals: Sequence[_Proposal], weights: Floats) -> Mapping[int, Floats]:
        """Return the mean options of models that form their own block; weights are (proposals, blocks)."""
        alone = np.flatnonzero(np.bincount(self._block)[self._block] == 1)
        mixes = np.array([self._patterns.options[proposal.chosen[alone]] for proposal in proposals])
        own = weights[:, self._block[alone]]
        means = (own[:, :, None] * mixes).sum(axis=0) / np.maximum(own.sum(axis=0), 1e-9)[:, None]
        return {
            model: mean
            for model, mean, total in zip(alone.tolist(), means, own.sum(axis=0).tolist(), strict=True)
            if total > 0.5  # noqa: PLR2004 (the weights of a block add up to 1)
        }

    def _support(self, proposals: Sequence[_Proposal], weights: Floats) -> tuple[Integers, Integers]:
        """Return the mixes that the LP solution combines; weights are (proposals, blocks)."""
        parts = [
            proposal.chosen[own[self._block] > LEAST_WEIGHT]
            for proposal, own in zip(proposals, weights, strict=True)
        ]
        indices = np.unique(np.concatenate(parts))
        return self._patterns.model[indices], self._patterns.options[indices]

    def _cuts(self, proposals: Sequence[_Proposal], solver: str) -> _Cuts:
        """Return the linear program for a solver, with the cuts of all proposals so far."""
        cuts = _Cuts(
            self._shared,
            self._objective,
            capacity=self._capacity,
            block=self._block,
            span=spans(self._patterns, self._objective.value, self._objective),
            solver=solver,
        )
        for proposal in proposals:
            cuts.add(proposal)
        return cuts

    def _proposal(self, duals: Duals) -> _Proposal:
        """Return the cheapest patterns with their values and their use of each row, by block."""
        patterns, options, blocks = self._patterns, self._options, int(self._block.max()) + 1
        chosen = patterns.best(duals.reduced)
        values = self._objective.value[chosen]
        fixed = np.bincount(self._block, weights=values, minlength=blocks).astype(np.float64)
        block_of = np.full(len(options.count), -1, dtype=np.int64)
        block_of[patterns.options[chosen]] = self._block[:, None]
        block_of[-1] = -1
        where = block_of[options.use_option]
        used = where >= 0
        rows = len(self._shared.types) + len(self._shared.limits)
        at = where[used] * rows + options.use_row[used]
        amounts = np.bincount(at, weights=options.use_amount[used], minlength=blocks * rows)
        caps = [
            np.bincount(self._block, weights=short[chosen].astype(np.float64), minlength=blocks)
            for short in self._objective.kept
        ]
        used_by_block = np.concatenate(
            [amounts.reshape(blocks, rows), *(cap[:, None] for cap in caps)], axis=1
        )
        return _Proposal(chosen=chosen, fixed=fixed, used=used_by_block)


def _blocks(
    options: Options, shared: SharedRows, patterns: Patterns, objective: PatternObjective
) -> Integers:
    """Return the block of each model: a few have their own, the others share.

    Their own have the models that can change the objective most, and those that can use most accelerators.
    """
    models = len(options.members)
    if models <= MOST_BLOCKS:
        return np.arange(models)
    accelerators = [kind.total for kind in shared.types] + [0] * len(shared.limits)
    used = options.prices(np.array(accelerators, dtype=np.float64))[patterns.options].sum(axis=1)
    orders = [
        np.argsort(-spans(patterns, value, objective), kind="stable") for value in (objective.value, used)
    ]
    first = np.unique(np.concatenate([order[: MOST_BLOCKS // 4] for order in orders]))
    block = np.empty(models, dtype=np.int64)
    others = np.setdiff1d(np.arange(models), first)
    block[first] = np.arange(len(first))
    block[others] = len(first) + np.arange(len(others)) % (MOST_BLOCKS - len(first))
    return block


def spans(patterns: Patterns, value: Floats, objective: PatternObjective) -> Floats:
    """Return the range of a value over the allowed patterns of each model, (models,)."""
    allowed = np.isfinite(objective.value)
    most = np.maximum.reduceat(np.where(allowed, value, -np.inf), patterns.start)
    least: Floats = patterns.least(np.where(allowed, value, np.inf))
    return most - least


class _Cuts:
    """The linear program over the prices, scaled so that its numbers are near one.

    Maximize the values of the blocks and growths, minus the worth of capacities. A unit of a type pays no
    more than in any bin that it may use.
    """

    def __init__(
        self,
        shared: SharedRows,
        objective: PatternObjective,
        *,
        capacity: Floats,
        block: Integers,
        span: Floats,
        solver: str,
    ) -> None:
        """Start without cuts.

        `capacity` (rows,) is that of slots, limits and kept levels; `block` (models,) is the block of each
        model; `span` (models,) the range of its patterns' values; `solver` is the name of an OR-Tools LP
        solver.
        """
        self._shared = shared
        self._solver = pywraplp.Solver.CreateSolver(solver)
        self._solver.SetTimeLimit(MOST_MILLISECONDS)
        self._parameters = pywraplp.MPSolverParameters()
        # Each program extends the one before by rows: warm start from its basis.
        self._parameters.SetIntegerParam(self._parameters.PRESOLVE, self._parameters.PRESOLVE_OFF)
        infinity = self._solver.infinity()
        worth = max(1.0, float(span.max(initial=0.0)))
        scale = max(1.0, float(span.sum()) / (int(block.max()) + 1))
        self._scale = scale
        self._size = np.maximum(capacity, 1.0)
        # The last unit of a capacity is worth at most `worth`; variables are prices of whole capacities.
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
        # Of each growth all nodes are added, if their slots are worth more than their price, or none.
        for g, most in enumerate(shared.growth_limit.tolist()):
            gain = self._solver.NumVar(-infinity, 0.0, "")
            goal.SetCoefficient(gain, 1.0)
            row = self._solver.Constraint(-infinity, float(most * objective.growth_price[g]) / self._scale)
            row.SetCoefficient(gain, 1.0)
            for index in np.flatnonzero(shared.growth_slots[g]).tolist():
                slots = float(most * shared.growth_slots[g, index])
                row.SetCoefficient(self._prices[index], slots / self._size[index])

    def _keep_types(self, shared: SharedRows) -> None:
        """Bound the price of a type by that of its slots in each of its bins; 0 without a bin."""
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

    def add(self, proposal: _Proposal) -> None:
        """Add a cut for each block: its value is at most what its proposal is worth and pays."""
        self._rows.append([])
        types, slots = len(self._types), len(self._shared.slots)
        sizes = self._size[slots:]
        for block, (amount, used) in enumerate(zip(proposal.fixed.tolist(), proposal.used, strict=True)):
            row = self._solver.Constraint(-self._solver.infinity(), amount / self._scale)
            self._rows[-1].append(row)
            row.SetCoefficient(self._blocks[block], 1.0)
            for index in np.flatnonzero(used).tolist():
                if index < types:
                    row.SetCoefficient(self._types[index], -float(used[index]))
                else:
                    price = self._prices[slots + index - types]
                    row.SetCoefficient(price, -float(used[index] / sizes[index - types]))

    def weights(self) -> Floats:
        """Return the weight of each proposal in the LP solution, (proposals, blocks)."""
        return np.array([[max(0.0, row.dual_value()) for row in rows] for rows in self._rows])

    def maximize(self) -> tuple[Floats, float] | None:
        """Return the best prices of the cutting-plane model and its value; None if the solver fails."""
        if self._solver.Solve(self._parameters) != pywraplp.Solver.OPTIMAL:
            return None
        prices = np.array([price.solution_value() for price in self._prices])
        promise = self._solver.Objective().Value() * self._scale
        return np.maximum(prices, 0.0) * self._scale / self._size, promise
