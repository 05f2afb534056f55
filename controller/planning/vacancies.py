"""Determine whether one more replica fits beside a solution."""

from __future__ import annotations

from itertools import accumulate

from controller.planning.engine.assign import with_added
from controller.planning.engine.rooms import Rooms
from controller.planning.hosts import Hosts
from controller.planning.problem import PlacementProblem, Solution, bins_of


class Vacancies:
    """The room that a solution leaves on nodes, including nodes that it adds."""

    def __init__(self, problem: PlacementProblem, solution: Solution) -> None:
        """Place the pods of a solution: on added nodes the largest first, each on the fullest node."""
        self._problem = problem
        self._bins = bins_of(problem)
        added = solution.added or (0,) * len(problem.growth)
        self._rooms = Rooms(with_added(problem, added), solution.replicas)
        for v, node, pods in solution.placements:
            self._rooms.put(v, node, pods)
        first = [*accumulate(added, initial=len(problem.free))]
        hosts = Hosts(
            self._rooms.hosts.free, {g: range(first[g], first[g + 1]) for g in range(len(problem.growth))}
        )
        grown = [(problem.variants[v].accelerators, v, g, pods) for v, g, pods in solution.grown]
        for size, v, g, count in sorted(grown, reverse=True):
            for node, pods in hosts.take_many((g,), size, count):
                self._rooms.put(v, node, pods)

    def has_room_for_one(self, variant: int) -> bool:
        """Return whether one more replica of a variant fits."""
        taken = self._rooms.take(variant, self._bins[variant], self._problem.variants[variant].pods)
        for node in taken or ():
            self._rooms.put(variant, node, -1)
        return taken is not None
