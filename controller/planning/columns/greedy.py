"""A good answer at once: by priority, each model takes what is best at the prices, if there is room.

First everybody gets its minimum, then demand is met level by level, as the lexicographic order has it.
Models take their columns together where there is room for all of them, by halves where there is not, and at
last one by one.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.room import Room
from controller.planning.columns.selection import Selection
from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.asked import Asking
    from controller.planning.columns.market import Quote
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources


TRIED_RANKS = (0, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89)
"""Which of a model's better columns are tried, the best being 0, before it stays as it was."""


def greedy(
    pools: Sequence[Pool],
    resources: Resources,
    asking: Asking,
    quote: Quote,
    *,
    start: Selection | None = None,
    before: Selection | None = None,
    after: int = -1,
    wanted: Sequence[Integers] | None = None,
) -> Selection:
    """Return a selection that has room: what serves the levels after one level best, on top of a start.

    Models first get what they had before, where that serves no level up to that one worse and there is still
    room; otherwise those that count at it or before it keep the columns of the start. The columns that are
    wanted, per pool (n,), stand for those at which models are served best.
    """
    fill = _Fill(pools, resources, asking, quote)
    if start and not fill.adopt(start):
        return start
    if before:
        fill.restore(before, after)
    for stage in (Stage.MINIMUM, Stage.DEMAND):
        for level in _levels(pools, stage):
            if level > after:
                fill.serve(stage, level, after, wanted)
    return fill.selection()


def resumed(
    pools: Sequence[Pool],
    resources: Resources,
    asking: Asking,
    quote: Quote,
    *,
    start: Sequence[Integers],
    wanted: Sequence[Integers],
) -> Selection | None:
    """Return what some models make of a start by taking the columns that are wanted for them.

    Both are per pool (n,). None where there is no room for the start.
    """
    fill = _Fill(pools, resources, asking, quote)
    if not fill.adopt(Selection(columns=tuple(start), added=np.zeros_like(resources.growth_limit))):
        return None
    for stage in (Stage.MINIMUM, Stage.DEMAND):
        for level in _levels(pools, stage):
            fill.serve(stage, level, -1, wanted, only_short=True)
    return fill.selection()


def _levels(pools: Sequence[Pool], stage: Stage) -> list[int]:
    """Return the levels at which models of some pools count at a stage, in order."""
    found = [np.unique(pool.cohort.levels[:, stage]) for pool in pools]
    return sorted(set(np.concatenate(found).tolist()) - {-1} if found else ())


def _counts_after(pool: Pool, level: int) -> Booleans:
    """(n,): whether a model counts at no level up to this one."""
    later: Booleans = np.all((pool.cohort.levels > level) | (pool.cohort.levels < 0), axis=1)
    return later


def _is_worse(pool: Pool, columns: Integers, held: Integers, after: int) -> Booleans:
    """(n,): whether columns leave a model shorter than those that it holds at any level up to this one."""
    model = np.arange(len(columns))
    short, shorter = pool.shortfalls[:, model, columns], pool.shortfalls[:, model, held]
    counts = (pool.cohort.levels >= 0) & (pool.cohort.levels <= after)
    worse: Booleans = np.any(counts.T & (short > shorter), axis=0)
    return worse


def _least(pool: Pool, models: Integers, tariff: Floats) -> Integers:
    """Return the cheapest columns among those that serve the minimum best, (models,)."""
    over = pool.shortfalls[Stage.MINIMUM, models] > pool.least[Stage.MINIMUM, models][:, None]
    over |= pool.homeless[models]
    cheapest: Integers = np.where(over, np.inf, tariff).argmin(axis=1)
    return cheapest


class _Fill:
    """Columns chosen so far, and the room that is left. Everybody begins with the first column: the least."""

    def __init__(self, pools: Sequence[Pool], resources: Resources, asking: Asking, quote: Quote) -> None:
        self._pools = pools
        self._resources = resources
        self._asking = asking
        self._quote = quote
        self._room = Room(resources=resources, bin_price=quote.bin_price)
        self._columns = [np.zeros(len(pool.cost), dtype=np.int64) for pool in pools]
        self._room.exchange(asking.nothing(pools), asking.of_all(pools, self._columns))

    def adopt(self, start: Selection) -> bool:
        """Take another selection for a start; tell whether there was room for it in this simple way."""
        if start.placed is not None:
            held = self._asking.of_all(self._pools, self._columns)
            wanted = self._asking.of_all(self._pools, start.columns)
            if self._room.adopt(held, wanted, placed=start.placed, added=start.added):
                self._columns = [columns.copy() for columns in start.columns]
                return True
        return self._exchange(
            [
                (index, model, column)
                for index, columns in enumerate(start.columns)
                for model, column in enumerate(columns.tolist())
            ]
        )

    def restore(self, before: Selection, after: int) -> None:
        """Give back the columns that models had where it does no harm up to a level, and there is room."""
        wishes: dict[int, list[tuple[int, int, int]]] = defaultdict(list)
        for index, (pool, columns) in enumerate(zip(self._pools, before.columns, strict=True)):
            held = self._columns[index]
            models = np.flatnonzero((columns != held) & ~_is_worse(pool, columns, held, after))
            at = pool.cohort.levels[models, Stage.DEMAND].tolist()
            for level, model, column in zip(at, models.tolist(), columns[models].tolist(), strict=True):
                wishes[level].append((index, model, column))
        for level in sorted(wishes):
            self._restore(wishes[level])

    def _restore(self, wishes: Sequence[tuple[int, int, int]]) -> None:
        """Grant (pool, model, column) all together, or by halves as far as there is room."""
        if self._exchange(wishes) or len(wishes) == 1:
            return
        self._restore(wishes[: len(wishes) // 2])
        self._restore(wishes[len(wishes) // 2 :])

    def serve(
        self,
        stage: Stage,
        level: int,
        after: int,
        wanted: Sequence[Integers] | None = None,
        *,
        only_short: bool = False,
    ) -> None:
        """Let the models of a level take what is wanted or serves them best, those that gain most first.

        Of minimums, if so asked, only the models that are short of it.
        """
        wishes = []
        for index, pool in enumerate(self._pools):
            models = np.flatnonzero((pool.cohort.levels[:, stage] == level) & _counts_after(pool, after))
            if stage is Stage.MINIMUM and only_short:
                short = pool.shortfalls[stage, models, self._columns[index][models]]
                models = models[short > pool.least[stage, models]]
            reduced = self._quote.reduced[index][models]
            if stage is Stage.MINIMUM:
                columns = _least(pool, models, self._quote.tariffs[index][models])
            else:
                columns = wanted[index][models] if wanted else reduced.argmin(axis=1)
            is_new = columns != self._columns[index][models]
            models, columns, reduced = models[is_new], columns[is_new], reduced[is_new]
            row = np.arange(len(models))
            gain = reduced[row, self._columns[index][models]] - reduced[row, columns]
            wishes += [
                (-g, index, m, c)
                for g, m, c in zip(gain.tolist(), models.tolist(), columns.tolist(), strict=True)
            ]
        self._take([(index, model, column) for _, index, model, column in sorted(wishes)])

    def selection(self) -> Selection:
        """Return what was chosen."""
        return Selection(
            columns=tuple(self._columns),
            added=self._resources.growth_limit - self._room.addable,
            placed=self._room.placed,
        )

    def _take(self, wishes: Sequence[tuple[int, int, int]]) -> None:
        """Grant (pool, model, column) all together, or by halves; one that has no room gets its next best."""
        if not wishes or self._exchange(wishes):
            return
        if len(wishes) > 1:
            self._take(wishes[: len(wishes) // 2])
            self._take(wishes[len(wishes) // 2 :])
            return
        ((index, model, _),) = wishes
        self._take_better(index, model)

    def _take_better(self, index: int, model: int) -> None:
        """Let a model take the best of some of its better columns that has room."""
        reduced, held = self._quote.reduced[index][model], int(self._columns[index][model])
        better = np.argsort(reduced, kind="stable")[: int((reduced < reduced[held]).sum())]
        if not len(better):
            return
        pool, same = self._pools[index], np.full(len(better), model)
        before = self._asking.of(pool, same[:1], np.array([held]))
        after = self._asking.of(pool, same, better)
        candidates = np.flatnonzero(self._room.may_exchange(before, after))
        for rank in TRIED_RANKS:
            if rank >= len(candidates):
                return
            turn = int(candidates[rank])
            if self._room.exchange([before], [after.only(turn)]):
                self._columns[index][model] = better[turn]
                return

    def _exchange(self, wishes: Sequence[tuple[int, int, int]]) -> bool:
        """Change the columns of models, if there is room for all of them."""
        wanted = np.array(wishes, dtype=np.int64)
        parts = [(index, wanted[wanted[:, 0] == index]) for index in np.unique(wanted[:, 0]).tolist()]
        before = [
            self._asking.of(self._pools[index], part[:, 1], self._columns[index][part[:, 1]])
            for index, part in parts
        ]
        after = [self._asking.of(self._pools[index], part[:, 1], part[:, 2]) for index, part in parts]
        if not self._room.exchange(before, after):
            return False
        for index, part in parts:
            self._columns[index][part[:, 1]] = part[:, 2]
        return True
