"""CP-SAT on the columns that matter: those that a better answer might use, as their reduced cost says.

A column whose reduced cost exceeds the distance between the best answer and the bound cannot be part of a
better one. If all others are in the core, its optimum is that of all columns.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.fitting import fit_replicas
from controller.planning.columns.program import Program
from controller.planning.columns.selection import Selection

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
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
) -> Core:
    """Return the incumbent's columns, each model's best and the `extra` next best ones, by reduced cost.

    Among columns of equal reduced cost, those with the least of `ties` come first; per pool (n, j), as
    `reduced` is. `distance` is that between the best answer and the bound.
    """
    slacks = [
        np.where(np.isfinite(objective), r - r.min(axis=1, keepdims=True), np.inf)
        for objective, r in zip(phase.objectives, reduced, strict=True)
    ]
    close = [slack <= distance for slack in slacks]
    wanted = sum(len(slack) for slack in slacks) + extra
    is_complete = sum(int(which.sum()) for which in close) <= wanted
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
    """The integer program over a core: one 0-1 variable per column."""

    def __init__(
        self, pools: Sequence[Pool], resources: Resources, asking: Asking, phase: Phase, core: Core
    ) -> None:
        self._pools = pools
        self._resources = resources
        self._phase = phase
        self._core = core
        self._program = Program()
        self._columns = [self._program.variables(len(pairs)) for pairs in core.pairs]
        self._growth = [self._program.variables(1, most).start for most in resources.growth_limit.tolist()]
        self._choose()
        self._take([asking.of(pool, *pairs.T) for pool, pairs in zip(pools, core.pairs, strict=True)])
        self._keep_caps()
        self._counted = self._objective()

    def solve(
        self, incumbent: Selection, *, bound: float, gap: float, limits: Limits
    ) -> tuple[Selection | None, Result]:
        """Return the best selection found, if any, and the account of the search, over the core only."""
        self._program.row(self._counted, least=math.ceil(bound - 1e-9 * abs(bound) - 1e-6))
        for variables, pairs, columns in zip(self._columns, self._core.pairs, incumbent.columns, strict=True):
            self._program.hint(variables, (columns[pairs[:, 0]] == pairs[:, 1]).astype(int).tolist())
        self._program.hint(self._growth, incumbent.added.tolist())
        result = self._program.solve(limits, absolute_gap=gap)
        return (self._selection(result.values) if result.values else None), result

    def _choose(self) -> None:
        for variables, pairs in zip(self._columns, self._core.pairs, strict=True):
            starts = np.flatnonzero(np.diff(pairs[:, 0], prepend=-1)).tolist()
            for start, stop in zip(starts, [*starts[1:], len(pairs)], strict=True):
                self._program.exactly_one(variables[start:stop])

    def _take(self, asked: Sequence[Asked]) -> None:
        """Give every new replica a place, and exceed no limit."""
        new: list[Terms] = [[] for _ in self._resources.sizes]
        limits: list[Terms] = [[] for _ in self._resources.limits]
        leaving: dict[int, Terms] = defaultdict(list)
        for variables, part in zip(self._columns, asked, strict=True):
            for into, counts in ((new, part.new), (limits, part.limits)):
                for row, terms in enumerate(into):
                    terms.extend(_terms(variables, counts[:, row]))
            for column, node, accelerators in part.leaving.tolist():
                leaving[node].append((variables[column], accelerators))
        fit_replicas(self._program, self._resources, asked=new, leaving=leaving, growth=self._growth)
        for terms, most in zip(limits, self._resources.limits.tolist(), strict=True):
            self._program.row(terms, most=most)

    def _keep_caps(self) -> None:
        """Let no earlier level get worse."""
        for row, cap in enumerate(self._phase.caps.tolist()):
            terms: Terms = []
            for index, (variables, pairs) in enumerate(zip(self._columns, self._core.pairs, strict=True)):
                shortfalls = np.zeros(self._pools[index].cost.shape, dtype=np.int64)
                models, short = self._phase.capped_shortfalls[index][row]
                shortfalls[models] = short
                terms += _terms(variables, shortfalls[pairs[:, 0], pairs[:, 1]])
            self._program.row(terms, most=cap)

    def _objective(self) -> Terms:
        counted = [
            term
            for variables, pairs, objective in zip(
                self._columns, self._core.pairs, self._phase.objectives, strict=True
            )
            for term in _terms(variables, objective[pairs[:, 0], pairs[:, 1]].astype(np.int64))
        ]
        counted += _terms(self._growth, self._phase.growth_price.astype(np.int64))
        self._program.minimize(counted)
        return counted

    def _selection(self, values: Sequence[int]) -> Selection:
        """Read the columns that were chosen."""
        solved = np.array(values, dtype=np.int64)
        chosen = [
            pairs[solved[variables.start : variables.stop] == 1, 1]
            for variables, pairs in zip(self._columns, self._core.pairs, strict=True)
        ]
        return Selection(columns=tuple(chosen), added=solved[self._growth])


def _terms(variables: Sequence[int], weights: Integers) -> Terms:
    """Return the terms that are not zero."""
    return [(variables[index], int(weights[index])) for index in np.flatnonzero(weights).tolist()]
