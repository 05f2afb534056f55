"""Placement by pattern columns and prices: near-optimal with a proof at any size, optimal at small ones.

Sources: column generation and Lagrangian bounds (Geoffrion, 1974), the core concept (Balas and Zemel, 1980).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.columns.asked import Asking
from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.naming import name_nodes
from controller.planning.columns.pool import pool_of
from controller.planning.columns.resources import resources_of
from controller.planning.columns.search import search
from controller.planning.columns.selection import replicas_of
from controller.planning.lexicographic import NoSolutionError
from controller.planning.magnitude import check_magnitude
from controller.planning.problem import Solution

if TYPE_CHECKING:
    from controller.planning.lexicographic import Limits
    from controller.planning.problem import PlacementProblem


def place(problem: PlacementProblem, *, limits: Limits) -> Solution:
    """Return a placement, how good it is at each level, and over what that holds.

    Raises NumbersTooLargeError.
    """
    check_magnitude(problem)
    if not problem.variants:
        return Solution(replicas=(), placements=())
    resources = resources_of(problem)
    levels = levels_of(problem)
    pools = [pool_of(cohort, first_mixes(cohort)) for cohort in cohorts_of(problem, resources, levels)]
    found = search(pools, resources, Asking(problem, resources), levels, limits)
    replicas = tuple(replicas_of(found.pools, found.selection, len(problem.variants)).tolist())
    places = name_nodes(problem, resources, replicas, found.selection.added, limits)
    if places is None:
        raise NoSolutionError("the replicas that were chosen could not be placed")
    worst = next((proof for proof in found.proofs if proof.gap), None)
    return Solution(
        replicas=replicas,
        placements=places.placements,
        grown=places.grown,
        added=tuple(found.selection.added.tolist()),
        proofs=found.proofs,
        unproven=worst.level if worst else "",
        gap=worst.gap if worst else 0.0,
    )
