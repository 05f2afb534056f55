"""Give leftover room to models that are short: a search that stops near its bound may leave some.

One more replica within limits and free accelerators reduces a shortfall and increases none.
"""

from __future__ import annotations

from collections.abc import Sequence

from controller.planning.engine.rooms import Rooms
from controller.planning.engine.shared import limit_of
from controller.planning.problem import (
    CountedReplicas,
    CoverRow,
    PlacementProblem,
    bins_of,
    per_mille_missing,
)


class Headroom:
    """The remaining amount of each limit."""

    def __init__(self, problem: PlacementProblem, replicas: Sequence[int]) -> None:
        """Start with what the given replicas leave."""
        self._left: list[int] = []
        self._uses: dict[int, list[tuple[int, int]]] = {}
        for index, row in enumerate(problem.limits):
            self._left.append(limit_of(row, problem) - sum(amount * replicas[v] for v, amount in row.terms))
            for v, amount in row.terms:
                if amount:
                    self._uses.setdefault(v, []).append((index, amount))

    def most(self, v: int, wanted: int) -> int:
        """Return how many of the wanted additional replicas of a variant the limits allow."""
        return min(
            [wanted, *(max(0, self._left[index]) // amount for index, amount in self._uses.get(v, ()))]
        )

    def take(self, v: int, replicas: int) -> None:
        """Deduct additional replicas of a variant from the limits."""
        for index, amount in self._uses.get(v, ()):
            self._left[index] -= amount * replicas


def fill(problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> tuple[int, ...]:
    """Return the replicas plus those that still fit, and place them; the most important rows first."""
    filling = _Filling(problem, replicas, rooms)
    for row in sorted(problem.rows, key=lambda row: (row.level, row.name)):
        if row.counted is CountedReplicas.ALL:
            filling.fill(row)
    return tuple(filling.replicas)


class _Filling:
    """Replica counts while more replicas are placed."""

    def __init__(self, problem: PlacementProblem, replicas: Sequence[int], rooms: Rooms) -> None:
        self.replicas = list(replicas)
        self._problem = problem
        self._rooms = rooms
        self._bins = bins_of(problem)
        self._headroom = Headroom(problem, replicas)

    def fill(self, row: CoverRow) -> None:
        """Add replicas as long as they reduce the shortfall of a row, the cheapest per amount first."""
        candidates = self._candidates(row)
        provided = sum(amount * self.replicas[v] for v, amount in row.terms)
        short = per_mille_missing(row.requirement, provided)
        while short and candidates:
            v, amount = candidates[0]
            less = per_mille_missing(row.requirement, provided + amount)
            if less < short and self._add(v):
                provided, short = provided + amount, less
            else:
                candidates.pop(0)

    def _candidates(self, row: CoverRow) -> list[tuple[int, int]]:
        """Return (variant, amount) of the row's variants that use accelerators, the cheapest first."""
        variants = self._problem.variants
        useful = [(v, amount) for v, amount in row.terms if amount and variants[v].accelerators]
        return sorted(useful, key=lambda term: (variants[term[0]].cost / term[1], term[0]))

    def _add(self, v: int) -> bool:
        """Add a replica of a variant if limits and nodes have room for it; return whether they do."""
        terms = self._problem.variants[v]
        if self.replicas[v] >= terms.upper or not self._headroom.most(v, 1):
            return False
        leaving = len(terms.bound_replicas) - self.replicas[v]
        if leaving > 0:  # no start while bound replicas leave, but the last of these may stay
            if not self._rooms.keep(v, terms.bound_replicas[leaving - 1]):
                return False
        elif self._rooms.take(v, self._bins[v], terms.pods) is None:
            return False
        self._headroom.take(v, 1)
        self.replicas[v] += 1
        return True
