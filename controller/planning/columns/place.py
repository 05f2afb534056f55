"""Placement by pattern columns and prices: near-optimal with a proof at any size, optimal at small ones.

Sources: column generation and Lagrangian bounds (Geoffrion, 1974), the core concept (Balas and Zemel, 1980).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.alternatives import alternatives
from controller.planning.columns.asked import Asking
from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.naming import name_nodes
from controller.planning.columns.pool import pool_of
from controller.planning.columns.resources import resources_of
from controller.planning.columns.search import Found, scope_of, search
from controller.planning.columns.selection import (
    Selection,
    level_values,
    replicas_of,
    total_values,
)
from controller.planning.lexicographic import NoSolutionError
from controller.planning.magnitude import check_magnitude
from controller.planning.problem import Proof, Solution

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.naming import Places
    from controller.planning.columns.pool import Pool
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem


def place(problem: PlacementProblem, *, limits: Limits) -> Solution:
    """Return a placement, how good it is at each level, and over what that holds.

    Raises NumbersTooLargeError, and NoSolutionError when the limits allow no answer.
    """
    return ColumnModel(problem).place(limits)


class ColumnModel:
    """A problem in columns. Raises NumbersTooLargeError."""

    def __init__(self, problem: PlacementProblem) -> None:
        check_magnitude(problem)
        self._problem = problem
        self._resources = resources_of(problem)
        self._levels = levels_of(problem)
        cohorts = cohorts_of(problem, self._resources, self._levels)
        self._pools = [pool_of(cohort, first_mixes(cohort)) for cohort in cohorts]
        self._alone = Selection(
            columns=tuple(pool.best_alone() for pool in self._pools),
            added=np.zeros_like(self._resources.growth_limit),
        )

    def alone(self) -> tuple[int, ...]:
        """Return the replicas that each model would have if it had everything to itself."""
        return self._replicas(self._pools, self._alone)

    def place(self, limits: Limits) -> Solution:
        """Return the best placement that the limits allow; at once, where there is room for everybody."""
        if not self._problem.variants:
            return Solution(replicas=(), placements=())
        replicas = self.alone()
        places = self._places(replicas, self._alone, limits) if self._keeps_limits(replicas) else None
        if places is not None:
            return _solution(self._everybody(), replicas, places)
        found = search(
            self._pools, self._resources, Asking(self._problem, self._resources), self._levels, limits
        )
        replicas = self._replicas(found.pools, found.selection)
        places = self._places(replicas, found.selection, limits)
        if places is None:
            raise NoSolutionError("the replicas that were chosen could not be placed in time")
        return _solution(found, replicas, places)

    def _everybody(self) -> Found:
        """Return the answer in which each model has what is best for it alone: nothing can be better."""
        values = level_values(self._pools, self._resources, self._levels, self._alone)
        scope = scope_of(self._pools)
        totals = [*total_values(self._pools, self._levels), values[-1]]
        proofs = [
            Proof(level=self._levels.name(level), value=value, bound=value, scope=scope, total=total)
            for level, (value, total) in enumerate(zip(values, totals, strict=True))
        ]
        return Found(
            pools=tuple(self._pools),
            selection=self._alone,
            proofs=tuple(proofs),
            tariffs=tuple(pool.cost.astype(np.float64) for pool in self._pools),
        )

    def _keeps_limits(self, replicas: tuple[int, ...]) -> bool:
        return bool((self._resources.limit_amounts @ np.array(replicas) <= self._resources.limits).all())

    def _replicas(self, pools: Sequence[Pool], selection: Selection) -> tuple[int, ...]:
        return tuple(replicas_of(pools, selection, len(self._problem.variants)).tolist())

    def _places(self, replicas: tuple[int, ...], selection: Selection, limits: Limits) -> Places | None:
        return name_nodes(self._problem, self._resources, replicas, selection.added, limits)


def _solution(found: Found, replicas: tuple[int, ...], places: Places) -> Solution:
    worst = next((proof for proof in found.proofs if proof.gap), None)
    return Solution(
        replicas=replicas,
        placements=places.placements,
        grown=places.grown,
        added=tuple(found.selection.added.tolist()),
        proofs=found.proofs,
        alternatives=alternatives(found.pools, found.tariffs, found.selection, variants=len(replicas)),
        unproven=worst.level if worst else "",
        gap=worst.gap if worst else 0.0,
    )
