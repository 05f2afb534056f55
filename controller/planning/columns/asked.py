"""What columns take of the shared resources as they are now, and what those that leave give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.problem import PlacementProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What k columns ask."""

    new: Integers
    """(k, classes): those which need a place."""

    limits: Integers
    """(k, limit rows)."""

    leaving: Integers
    """(r, 3): column (of the k), node and accelerators of each replica that leaves."""

    def only(self, column: int) -> Asked:
        """Return what one of them asks."""
        return Asked(
            new=self.new[column : column + 1],
            limits=self.limits[column : column + 1],
            leaving=self.leaving[self.leaving[:, 0] == column],
        )


class Asking:
    """Knows what any columns ask."""

    def __init__(self, problem: PlacementProblem, resources: Resources) -> None:
        self._resources = resources
        bound = [
            (node, terms.accelerators)
            for terms in problem.variants
            for nodes in terms.bound
            for node in nodes
        ]
        self._bound = np.array(bound, dtype=np.int64).reshape(-1, 2)
        self._first = np.cumsum([0, *(len(terms.bound) for terms in problem.variants)])
        pods = [len(nodes) for terms in problem.variants for nodes in terms.bound]
        self._pods = np.cumsum([0, *pods])

    def of(self, pool: Pool, models: Integers, columns: Integers) -> Asked:
        """Return what columns of some models ask; both (k,)."""
        cohort, resources = pool.cohort, self._resources
        variants, mixes = cohort.variants[models], pool.mixes[models, columns]
        more = mixes - cohort.bound[models]
        placed = np.maximum(more, 0) * cohort.units[models] if pool.new is None else pool.new[models, columns]
        new = np.zeros((len(models), len(resources.sizes) + 1), dtype=np.int64)
        np.add.at(new, (np.arange(len(models))[:, None], cohort.place_class[models]), placed)
        amounts = resources.limit_amounts[:, variants]
        return Asked(
            new=new[:, :-1],
            limits=(amounts * mixes).sum(axis=2).T,
            leaving=self._leaving(variants, np.maximum(-more, 0)),
        )

    def of_all(self, pools: Sequence[Pool], columns: Sequence[Integers]) -> list[Asked]:
        """Return what all models ask with a column each, per pool (n,)."""
        return [self.of(pool, np.arange(len(own)), own) for pool, own in zip(pools, columns, strict=True)]

    def nothing(self, pools: Sequence[Pool]) -> list[Asked]:
        """Return what no model asks, per pool."""
        none = np.zeros(0, dtype=np.int64)
        return [self.of(pool, none, none) for pool in pools]

    def _leaving(self, variants: Integers, leaving: Integers) -> Integers:
        """Return (column, node, accelerators) of the first replicas in removal order; both inputs (k, w)."""
        if not leaving.any():
            return np.zeros((0, 3), dtype=np.int64)
        first = self._first[variants.ravel()]
        start = self._pods[first]
        counts = self._pods[first + leaving.ravel()] - start
        column = np.repeat(np.arange(leaving.size) // leaving.shape[1], counts)
        turn = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        leaving_of = np.empty((len(turn), 3), dtype=np.int64)
        leaving_of[:, 0], leaving_of[:, 1:] = column, self._bound[np.repeat(start, counts) + turn]
        return leaving_of
