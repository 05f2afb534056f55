"""Accelerators by kind of node, the inventory of heuristics that only count."""

from __future__ import annotations

from collections.abc import Sequence

from hack.fleets.rivals.view import RivalView


class Pools:
    """Remaining accelerators of each kind, summed over its nodes."""

    def __init__(self, view: RivalView, replicas: Sequence[int]) -> None:
        """Create the pools without what the given replicas use, by variant name and as far as possible."""
        self._left = list(view.rooms)
        self._usable = view.usable
        self._accelerators = [terms.accelerators_per_replica for terms in view.problem.variants]
        for v in view.by_name:
            if replicas[v]:
                self.take(v, replicas[v])

    def fits(self, variant: int, replicas: int) -> bool:
        """Tell whether that many replicas of the variant fit."""
        each = self._accelerators[variant]
        for k in self._usable[variant] if each else ():
            replicas -= self._left[k] // each
        return not each or replicas <= 0

    def take(self, variant: int, replicas: int) -> int:
        """Take as many of the replicas as fit; return the number."""
        each, placed = self._accelerators[variant], 0
        if not each:
            return replicas
        for k in self._usable[variant]:
            count = min(replicas - placed, self._left[k] // each)
            self._left[k] -= count * each
            placed += count
        return placed
