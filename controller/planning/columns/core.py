"""CP-SAT on the columns that matter: those that a better answer might use, as their reduced cost says.

A column whose reduced cost exceeds the distance between the best answer and the bound cannot be part of a
better one. If all others are in the core, its optimum is that of all columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.fitting import fit_replicas
from controller.planning.columns.program import Program
from controller.planning.columns.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.asked import Asked, Asking
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.program import Result, Terms
    from controller.planning.columns.resources import Resources
    from controller.planning.lexicographic import Limits


TIE_SHARE = 1e-6
"""How much of the distance to the bound the breaking of ties may seem to make."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Core:
    """The columns in question: for each pool, the (model, column) pairs, models ascending."""

    pairs: tuple[Integers, ...]
    """Per pool (k, 2)."""

    is_complete: bool
    """Whether every column that could be part of a better answer is in it."""


def core_of(
    phase: Phase,
    reduced: Sequence[Floats],
    ties: Sequence[Floats],
    incumbent: Selection,
    *,
    distance: float,
    extra: int,
    most: int,
) -> Core:
    """Return the incumbent's columns, each model's best and the `extra` next best ones, by reduced cost.

    All that might matter are in it where they are no more than `most`, beside one per model.

    Among columns of equal reduced cost, those with the least of `ties` come first; per pool (n, j), as
    `reduced` is. `distance` is that between the best answer and the bound.
    """
    slacks = [
        np.where(np.isfinite(objective), r - r.min(axis=1, keepdims=True), np.inf)
        for objective, r in zip(phase.objectives, reduced, strict=True)
    ]
    close = [slack <= distance for slack in slacks]
    models = sum(len(slack) for slack in slacks)
    wanted = models + extra
    is_complete = sum(int(which.sum()) for which in close) <= models + most
    ranks = [_broken(slack, tie, distance) for slack, tie in zip(slacks, ties, strict=True)]
    if not is_complete:
        ranked = np.concatenate([rank[which] for rank, which in zip(ranks, close, strict=True)])
        threshold = float(np.partition(ranked, wanted - 1)[wanted - 1])
        close = [which & (rank <= threshold) for rank, which in zip(ranks, close, strict=True)]
    for kept, rank, columns in zip(close, ranks, incumbent.columns, strict=True):
        kept[np.arange(len(columns)), columns] = True
        kept[np.arange(len(columns)), rank.argmin(axis=1)] = True
    return Core(pairs=tuple(np.argwhere(kept) for kept in close), is_complete=is_complete)


def _broken(slack: Floats, tie: Floats, distance: float) -> Floats:
    """Return the slack with ties broken: by less than any difference that matters."""
    if not math.isfinite(distance):
        return slack
    behind = np.where(np.isfinite(tie), tie - tie.min(axis=1, keepdims=True), 0.0)
    broken: Floats = slack + behind * (distance * TIE_SHARE / max(1.0, float(behind.max())))
    return broken


class CoreProgram:
    """The integer program over a core: one 0-1 variable per column of a model that has several.

    What models with one column take is certain: together they are a single variable that is 1.
    """

    def __init__(
        self, pools: Sequence[Pool], resources: Resources, asking: Asking, phase: Phase, core: Core
    ) -> None:
        self._pools = pools
        self._phase = phase
        self._pairs = core.pairs
        self._is_open = [_is_choice(pairs) for pairs in core.pairs]
        self._program = Program()
        self._certain = self._program.constant()
        self._columns = [self._program.variables(int(is_open.sum())) for is_open in self._is_open]
        self._growth = [self._program.variables(1, most).start for most in resources.growth_limit.tolist()]
        asked = [asking.of(pool, *pairs.T) for pool, pairs in zip(pools, core.pairs, strict=True)]
        self._resources = resources.after(self._leaves_for_certain(asked, len(resources.free)))
        self._choose()
        self._take(asked)
        self._keep_caps()
        self._counted = self._objective()

    def solve(
        self, incumbent: Selection, *, placed: Integers | None, bound: float, gap: float, limits: Limits
    ) -> tuple[Selection | None, Result]:
        """Return the best selection found, if any, and the account of the search, over the core only.

        `placed` says how many new replicas of the incumbent go where, (classes, bins), if that is known.
        """
        self._program.row(self._counted, least=math.ceil(bound - 1e-9 * abs(bound) - 1e-6))
        self._hint(incumbent, placed)
        result = self._program.solve(limits, absolute_gap=gap)
        return (self._selection(result.values) if result.values else None), result

    def _hint(self, incumbent: Selection, placed: Integers | None) -> None:
        """Begin with the incumbent: whatever the time comes to, there is an answer, if all of it is said."""
        hints = dict(zip(self._growth, incumbent.added.tolist(), strict=True))
        for variables, pairs, columns in zip(self._columns, self._open_pairs, incumbent.columns, strict=True):
            is_chosen = columns[pairs[:, 0]] == pairs[:, 1]
            hints.update(zip(variables, is_chosen.astype(int).tolist(), strict=True))
        for slots in self._fitting.slots:
            free = slots.free + sum(weight * hints.get(variable, 0) for variable, weight in slots.gone)
            hints[slots.variable] = max(0, free) // slots.size
            if slots.has_room is not None:
                hints[slots.has_room] = int(free >= 0)
        if placed is not None:
            for part, group, bin_ in self._fitting.routed:
                hints[part] = int(placed[group, bin_])
        self._program.hint(list(hints), list(hints.values()))

    @property
    def _open_pairs(self) -> list[Integers]:
        return [pairs[is_open] for pairs, is_open in zip(self._pairs, self._is_open, strict=True)]

    def _choose(self) -> None:
        for variables, pairs in zip(self._columns, self._open_pairs, strict=True):
            starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1)).tolist()
            for start, stop in pairwise([*starts, len(pairs)]):
                self._program.exactly_one(variables[start:stop])

    def _leaves_for_certain(self, asked: Sequence[Asked], nodes: int) -> Integers:
        """Return how many accelerators leave each node whatever is chosen, (nodes,)."""
        gone = np.zeros(nodes, dtype=np.int64)
        for is_open, part in zip(self._is_open, asked, strict=True):
            column, node, accelerators = part.leaving.T
            is_certain = ~is_open[column]
            np.add.at(gone, node[is_certain], accelerators[is_certain])
        return gone

    def _take(self, asked: Sequence[Asked]) -> None:
        """Give every new replica a place, and exceed no limit."""
        new = [self._sum([part.new[:, row] for part in asked]) for row in range(len(self._resources.sizes))]
        limits = [
            self._sum([part.limits[:, row] for part in asked]) for row in range(len(self._resources.limits))
        ]
        leaving: dict[int, Terms] = defaultdict(list)
        for variables, is_open, part in zip(self._columns, self._is_open, asked, strict=True):
            turn = np.cumsum(is_open) - 1
            for column, node, accelerators in part.leaving[is_open[part.leaving[:, 0]]].tolist():
                leaving[node].append((variables[turn[column]], accelerators))
        self._asked = new
        self._fitting = fit_replicas(
            self._program, self._resources, asked=new, leaving=leaving, growth=self._growth
        )
        for terms, most in zip(limits, self._resources.limits.tolist(), strict=True):
            self._program.row(terms, most=most)

    def _keep_caps(self) -> None:
        """Let no earlier level get worse."""
        for row, cap in enumerate(self._phase.caps.tolist()):
            weights = []
            for index, pairs in enumerate(self._pairs):
                shortfalls = np.zeros(self._pools[index].cost.shape, dtype=np.int64)
                models, short = self._phase.capped_shortfalls[index][row]
                shortfalls[models] = short
                weights.append(shortfalls[pairs[:, 0], pairs[:, 1]])
            self._program.row(self._sum(weights), most=cap)

    def _objective(self) -> Terms:
        counted = self._sum(
            [
                objective[pairs[:, 0], pairs[:, 1]].astype(np.int64)
                for pairs, objective in zip(self._pairs, self._phase.objectives, strict=True)
            ]
        )
        counted += _terms(self._growth, self._phase.growth_price.astype(np.int64))
        self._program.minimize(counted)
        return counted

    def _sum(self, weights: Sequence[Integers]) -> Terms:
        """Return the sum of a weight for each pair of the core, per pool (k,)."""
        certain, terms = 0, []
        for variables, is_open, each in zip(self._columns, self._is_open, weights, strict=True):
            certain += int(each[~is_open].sum())
            terms += _terms(variables, each[is_open])
        return [*terms, (self._certain, certain)] if certain else terms

    def _selection(self, values: Sequence[int]) -> Selection:
        """Read the columns that were chosen."""
        solved = np.array(values, dtype=np.int64)
        chosen = []
        for variables, pairs, is_open in zip(self._columns, self._pairs, self._is_open, strict=True):
            is_chosen = ~is_open
            is_chosen[is_open] = solved[variables.start : variables.stop] == 1
            chosen.append(pairs[is_chosen, 1])
        return Selection(columns=tuple(chosen), added=solved[self._growth], placed=self._placed(solved))

    def _placed(self, solved: Integers) -> Integers:
        """Read how many new replicas go where, (classes, bins)."""
        placed: Integers = np.zeros_like(self._resources.allowed, dtype=np.int64)
        for (group, bin_), flow in self._fitting.flows.items():
            placed[group, bin_] = _value(flow, solved)
        # There may be more ways than replicas to go them.
        spare = placed.sum(axis=1) - self._new(solved)
        for bin_ in range(len(placed.T)):
            fewer = np.minimum(placed[:, bin_], spare)
            placed[:, bin_] -= fewer
            spare -= fewer
        return placed

    def _new(self, solved: Integers) -> Integers:
        """Read how many new replicas there are, (classes,)."""
        return np.array([_value(terms, solved) for terms in self._asked])


def _is_choice(pairs: Integers) -> Booleans:
    """(k,): whether the model of a pair has another one; models ascend."""
    model = pairs[:, 0]
    is_same = model[1:] == model[:-1]
    is_choice: Booleans = np.append(is_same, values=False) | np.insert(is_same, 0, values=False)
    return is_choice


def _value(terms: Terms, solved: Integers) -> int:
    return sum(weight * int(solved[variable]) for variable, weight in terms)


def _terms(variables: Sequence[int], weights: Integers) -> Terms:
    """Return the terms that are not zero."""
    return [(variables[index], int(weights[index])) for index in np.flatnonzero(weights).tolist()]
