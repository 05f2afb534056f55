"""Determine whether one more replica fits beside a solution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.engine.assign import with_added
from controller.planning.engine.rooms import Rooms
from controller.planning.problem import bins_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.problem import PlacementProblem, Solution


class Vacancies:
    """The room that a solution leaves on nodes, including nodes that it adds."""

    def __init__(self, problem: PlacementProblem, solution: Solution) -> None:
        self._problem = problem
        self._bins = bins_of(problem)
        whole = with_added(problem, solution.added or (0,) * len(problem.growth))
        self._rooms = Rooms(whole, solution.replicas)
        for v, node, pods in solution.placements:
            self._rooms.put(v, node, pods)
        for v, node in _on_added(problem, solution):
            self._rooms.put(v, node, 1)

    def has_room_for_one(self, variant: int) -> bool:
        """Return whether one more replica of a variant fits."""
        taken = self._rooms.take(variant, self._bins[variant], self._problem.variants[variant].pods)
        for node in taken or ():
            self._rooms.put(variant, node, -1)
        return taken is not None


def _on_added(problem: PlacementProblem, solution: Solution) -> Iterator[tuple[int, int]]:
    """Yield (variant, node) of each pod on an added node: largest first, each on the fullest node."""
    free: list[list[int]] = []
    first = [len(problem.free)]
    for growth, count in zip(problem.growth, solution.added, strict=False):
        free.append([growth.accelerators] * count)
        first.append(first[-1] + count)
    for size, v, g, pods in sorted(
        ((problem.variants[v].accelerators, v, g, pods) for v, g, pods in solution.grown), reverse=True
    ):
        for _ in range(pods):
            room = [(left, turn) for turn, left in enumerate(free[g]) if left >= size]
            if room:
                turn = min(room)[1]
                free[g][turn] -= size
                yield v, first[g] + turn
