"""Track what quotas, budgets and ceilings leave while replicas are added one by one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.engine.shared import limit_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem


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
