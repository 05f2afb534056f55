"""Accelerators by kind of node: the inventory of those who count only."""

from __future__ import annotations

from collections.abc import Sequence

from hack.fleets.rivals.view import View


class Pools:
    """Accelerators left of each kind, in sum over its nodes."""

    def __init__(self, view: View, replicas: Sequence[int]) -> None:
        """Begin without what some replicas of each variant take, by name and as far as it goes."""
        self._left = list(view.rooms)
        self._usable = view.usable
        self._accelerators = [terms.accelerators_per_replica for terms in view.problem.variants]
        for v in view.by_name:
            if replicas[v]:
                self.take(v, replicas[v])

    def fits(self, variant: int, replicas: int) -> bool:
        """Tell whether so many replicas of the variant are left."""
        each = self._accelerators[variant]
        for k in self._usable[variant] if each else ():
            replicas -= self._left[k] // each
        return not each or replicas <= 0

    def take(self, variant: int, replicas: int) -> int:
        """Take so many replicas, or as many as are left; return how many."""
        each, taken = self._accelerators[variant], 0
        if not each:
            return replicas
        for k in self._usable[variant]:
            count = min(replicas - taken, self._left[k] // each)
            self._left[k] -= count * each
            taken += count
        return taken
