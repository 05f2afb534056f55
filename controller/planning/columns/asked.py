"""What columns take of the shared resources as they are now, and what those that leave give back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.problem import PlacementProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What k columns ask."""

    replicas: Integers
    """(k, classes): new ones, which need a place."""

    limits: Integers
    """(k, limit rows)."""

    leaving: Integers
    """(r, 3): column (of the k), node and accelerators of each replica that leaves."""


class Asking:
    """Knows what any columns ask."""

    def __init__(self, problem: PlacementProblem, resources: Resources) -> None:
        self._resources = resources
        # A node outside the problem gives nothing back.
        bound = [
            (-1 if node is None else node, terms.accelerators)
            for terms in problem.variants
            for node in terms.bound
        ]
        self._bound = np.array(bound, dtype=np.int64).reshape(-1, 2)
        self._start = np.cumsum([0, *(len(terms.bound) for terms in problem.variants)])

    def of(self, pool: Pool, models: Integers, columns: Integers) -> Asked:
        """Return what columns of some models ask; both (k,)."""
        cohort, resources = pool.cohort, self._resources
        variants, mixes = cohort.variants[models], pool.mixes[models, columns]
        more = mixes - cohort.bound[models]
        replicas = np.zeros((len(models), len(resources.sizes) + 1), dtype=np.int64)
        np.add.at(
            replicas, (np.arange(len(models))[:, None], resources.class_of[variants]), np.maximum(more, 0)
        )
        amounts = resources.limit_amounts[:, variants]
        return Asked(
            replicas=replicas[:, :-1],
            limits=(amounts * mixes).sum(axis=2).T,
            leaving=self._leaving(variants, np.maximum(-more, 0)),
        )

    def _leaving(self, variants: Integers, leaving: Integers) -> Integers:
        """Return (column, node, accelerators) of the first replicas in removal order; both inputs (k, w)."""
        if not leaving.any():
            return np.zeros((0, 3), dtype=np.int64)
        counts = leaving.ravel()
        column = np.repeat(np.arange(leaving.size) // leaving.shape[1], counts)
        turn = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        bound = self._bound[np.repeat(self._start[variants.ravel()], counts) + turn]
        kept = bound[:, 0] >= 0
        leaving_of: Integers = np.column_stack([column, bound])[kept]
        return leaving_of
