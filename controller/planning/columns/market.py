"""What all columns answer to prices: each model its cheapest one, and what they take of what is shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.takings import Takings, cheapest_bins

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources


BLOCKS = 16
"""Into how many parts the models are divided; each part answers with a cut of its own."""

DOMINANT = 8
"""How many models, those that count most, are parts of their own."""


GOLDEN = 0.6180339887498949
"""Steps of the golden ratio fall evenly into any parts."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Answer:
    """What the columns say to prices."""

    bound: float
    chosen: tuple[Integers, ...]
    """Per pool (n,): each model's cheapest column."""

    reduced: tuple[Floats, ...]
    """Per pool (n, j): what each column costs at the prices."""

    fixed: Floats
    """(blocks,): objective of the chosen columns."""

    taken: Floats
    """(blocks, rows): what they take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quote:
    """What everything costs at some prices."""

    reduced: tuple[Floats, ...]
    """Per pool (n, j): what each column counts for, shortfalls included."""

    tariffs: tuple[Floats, ...]
    """Per pool (n, j): what each column costs with what it takes of slots and limits."""

    bin_price: Floats
    """(classes, bins): of one replica's slots; infinite where it may not go."""

    bound: float
    """No choice of columns counts for less, all in all."""


class Market:
    """The columns of all models in one phase, answering to prices."""

    def __init__(
        self, pools: Sequence[Pool], resources: Resources, phase: Phase, *, like: Market | None = None
    ) -> None:
        """Divide the models into parts, or as another market of the same models did."""
        self._pools = pools
        self._resources = resources
        self._phase = phase
        self.takings = Takings(pools, resources)
        starts = np.cumsum([0, *(len(pool.cost) for pool in pools)])
        blocks = _blocks(phase)
        own = [blocks[start:stop] for start, stop in pairwise(starts)]
        self._block_of: list[Integers] = like._block_of if like else own  # noqa: SLF001 (of its own kind)

    def answer(self, prices: Floats) -> Answer:
        """Return the bound at these prices, each model's choice, and what the choices take."""
        resources, phase = self._resources, self._phase
        slots, limits = len(resources.slots), len(resources.limits)
        where, class_price = cheapest_bins(resources, prices[:slots])
        limit_price, cap_price = prices[slots : slots + limits], prices[slots + limits :]
        taken_classes = np.zeros((BLOCKS, len(resources.sizes) + 1))
        taken_limits = np.zeros((BLOCKS, limits))
        taken_caps = np.zeros((BLOCKS, len(phase.capped)))
        fixed, bound = np.zeros(BLOCKS), 0.0
        chosen, reduced = [], []
        for index, pool in enumerate(self._pools):
            costs = self._reduced(index, class_price, limit_price, cap_price)
            choice = costs.argmin(axis=1)
            model, block = np.arange(len(choice)), self._block_of[index]
            bound += float(costs[model, choice].sum())
            fixed += np.bincount(block, weights=phase.objectives[index][model, choice], minlength=BLOCKS)
            flat = block[:, None] * taken_classes.shape[1] + self.takings.class_of[index]
            taken_classes += np.bincount(
                flat.ravel(), weights=pool.asked[model, choice].ravel(), minlength=taken_classes.size
            ).reshape(taken_classes.shape)
            for row, amounts in enumerate(self.takings.amounts[index]):
                used = (pool.mixes[model, choice] * amounts).sum(axis=1)
                taken_limits[:, row] += np.bincount(block, weights=used, minlength=BLOCKS)
            for row, (models, shortfalls) in enumerate(phase.capped_shortfalls[index]):
                short = shortfalls[np.arange(len(models)), choice[models]]
                taken_caps[:, row] += np.bincount(block[models], weights=short, minlength=BLOCKS)
            chosen.append(choice)
            reduced.append(costs)
        bound += self._shared(prices)
        taken_slots = taken_classes[:, :-1] @ _uses_at(resources, where)
        return Answer(
            bound=bound,
            chosen=tuple(chosen),
            reduced=tuple(reduced),
            fixed=fixed,
            taken=np.concatenate([taken_slots, taken_limits, taken_caps], axis=1),
        )

    def recalled(self, answer: Answer) -> Answer | None:
        """Return what columns count for now that were chosen from fewer; None if one is ruled out."""
        fixed = np.zeros(BLOCKS)
        for objective, choice, block in zip(
            self._phase.objectives, answer.chosen, self._block_of, strict=True
        ):
            fixed += np.bincount(block, weights=objective[np.arange(len(choice)), choice], minlength=BLOCKS)
        return replace(answer, fixed=fixed) if np.isfinite(fixed).all() else None

    def quote(self, rows: Floats) -> Quote:
        """Return what everything costs at some prices."""
        resources = self._resources
        slots, shared = len(resources.slots), len(resources.capacity)
        _, class_price = cheapest_bins(resources, rows[:slots])
        reduced = [
            self._reduced(index, class_price, rows[slots:shared], rows[shared:])
            for index, _ in enumerate(self._pools)
        ]
        return Quote(
            reduced=tuple(reduced),
            tariffs=self.takings.tariffs(rows),
            bin_price=resources.bin_prices(rows[:slots]),
            bound=sum(float(costs.min(axis=1).sum()) for costs in reduced) + self._shared(rows),
        )

    def _reduced(self, index: int, class_price: Floats, limit_price: Floats, cap_price: Floats) -> Floats:
        """Return what each column of a pool costs at the prices, (n, j)."""
        costs = self._phase.objectives[index] + self.takings.paid(index, class_price, limit_price)
        for row, (models, shortfalls) in enumerate(self._phase.capped_shortfalls[index]):
            costs[models] += cap_price[row] * shortfalls
        return costs

    def worth(self) -> float:
        """Return the most that one replica more is worth to any model, over its worst column."""
        most = 1.0
        for pool, objective in zip(self._pools, self._phase.objectives, strict=True):
            possible = np.isfinite(objective)
            worst = np.where(possible, objective, -np.inf).max(axis=1, keepdims=True)
            gained = np.where(possible, worst - objective, 0.0) / np.maximum(pool.asked.sum(axis=2), 1.0)
            most = max(most, float(gained.max(initial=0.0)))
        return most

    def _shared(self, rows: Floats) -> float:
        """Return what all that is shared fetches at the prices, and the nodes that pay: never above 0."""
        slots = len(self._resources.slots)
        gain = self._phase.growth_price - self._resources.growth_slots @ rows[:slots]
        grown = float((self._resources.growth_limit * np.minimum(gain, 0)).sum())
        return grown - float(self._phase.capacity @ rows)

    def blends(self, answers: Sequence[Answer], weights: Floats) -> tuple[Floats, ...]:
        """Return each model's mixes over several answers, weighed by (answers, blocks); per pool (n, w)."""
        blends = []
        for index, (pool, blocks) in enumerate(zip(self._pools, self._block_of, strict=True)):
            model = np.arange(len(blocks))
            blend = np.zeros(pool.cohort.shape)
            for answer, weight in zip(answers, weights, strict=True):
                if weight.any():
                    blend += weight[blocks][:, None] * pool.mixes[model, answer.chosen[index]]
            blends.append(blend)
        return tuple(blends)

    def drawn(self, answers: Sequence[Answer], weights: Floats) -> tuple[Integers, ...]:
        """Return a column for each model, per pool (n,): each answer has about its part of each block.

        The weights are (answers, blocks).
        """
        shares = np.cumsum(weights, axis=0) / np.maximum(weights.sum(axis=0), 1e-12)
        seen = np.zeros(BLOCKS, dtype=np.int64)
        drawn = []
        for index, blocks in enumerate(self._block_of):
            turn = np.empty(len(blocks), dtype=np.int64)
            for block in np.unique(blocks).tolist():
                members = np.flatnonzero(blocks == block)
                turn[members] = seen[block] + np.arange(len(members))
                seen[block] += len(members)
            point = (0.5 + turn * GOLDEN) % 1.0
            which = (shares[:, blocks] < point).sum(axis=0)
            chosen = np.array([answer.chosen[index] for answer in answers])
            drawn.append(chosen[np.minimum(which, len(answers) - 1), np.arange(len(blocks))])
        return tuple(drawn)


def _blocks(phase: Phase) -> Integers:
    """Return the part that each model belongs to: a dominant one for itself, the others in turn."""
    spans = np.concatenate([spans_of(objective) for objective in phase.objectives])
    blocks = np.arange(len(spans)) % (BLOCKS - DOMINANT)
    dominant = np.argsort(-spans, kind="stable")[:DOMINANT]
    blocks[dominant] = BLOCKS - DOMINANT + np.arange(len(dominant))
    return blocks


def _uses_at(resources: Resources, where: Integers) -> Floats:
    """Return how many slots a replica of each class takes in one bin each, (classes, slot rows)."""
    there: Floats = np.where(resources.row_bin == where[:, None], resources.own_uses, 0.0)
    return there


def spans_of(objective: Floats) -> Floats:
    """Return by how much each model's possible columns differ, (n,)."""
    spans: Floats = np.where(np.isfinite(objective), objective, -np.inf).max(axis=1) - objective.min(axis=1)
    return spans
