"""A plain good start: everybody stays; what is missing is added where there is room, most important first.

Where what runs exceeds a quota or a budget, only what must not be touched stays.

The solver begins here and never returns anything worse. Nothing is taken from anybody: who gives way is for
the solver to find.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.fit import hosts_of
from controller.planning.problem import Stage, bins_of, freed, provided

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from controller.planning.problem import CoverRow, PlacementProblem


def baseline(problem: PlacementProblem) -> tuple[tuple[int, ...], Mapping[tuple[int, int], int]]:
    """Return replicas per variant, and how many new ones of a variant each (node, variant) takes."""
    made = _Baseline(problem, [min(len(terms.bound), terms.upper) for terms in problem.variants])
    if made.is_over_budget:
        return tuple(terms.lower for terms in problem.variants), {}
    wanting = [row for row in problem.rows if row.stage is not Stage.CONTINUITY]
    for row in sorted(wanting, key=lambda row: row.level):
        while steps := list(made.steps(row)):
            _, v, node = min(steps, key=lambda step: step[:2])
            made.add(v, node)
    return tuple(made.replicas), made.shares


class _Baseline:
    """Who runs so far, what is free then, and what is left of quotas and budgets."""

    def __init__(self, problem: PlacementProblem, replicas: list[int]) -> None:
        self.replicas = replicas
        self.shares: Counter[tuple[int, int]] = Counter()
        self._problem = problem
        self._hosts = hosts_of(problem, freed(problem, tuple(replicas)))
        self._bins = bins_of(problem)
        self._left = [
            row.limit - sum(amount * replicas[v] for v, amount in row.terms) for row in problem.limits
        ]
        self._uses: list[Counter[int]] = [Counter() for _ in replicas]
        for index, row in enumerate(problem.limits):
            for v, amount in row.terms:
                self._uses[v][index] += amount

    @property
    def is_over_budget(self) -> bool:
        """Whether a quota or a budget that somebody uses is exceeded."""
        return any(self._left[index] < 0 for uses in self._uses for index in uses)

    def steps(self, row: CoverRow) -> Iterator[tuple[float, int, int | None]]:
        """Yield each replica that would help a row and has room: (cost per useful amount, variant, node).

        For those whose place is not a matter of room on one node none is tried.
        """
        missing = row.requirement - provided(self._problem, row, tuple(self.replicas))
        for v, amount in row.terms if missing > 0 else ():
            terms = self._problem.variants[v]
            if terms.is_choosy or terms.pods > 1 or self.replicas[v] >= terms.upper or not self._may_pay(v):
                continue
            node = self._hosts.fullest(self._bins[v], terms.accelerators) if terms.accelerators else None
            if node is not None or not terms.accelerators:
                yield terms.cost / min(amount, missing), v, node

    def add(self, variant: int, node: int | None) -> None:
        """Add a replica, on a node if it needs one."""
        self.replicas[variant] += 1
        for index, amount in self._uses[variant].items():
            self._left[index] -= amount
        if node is not None:
            self._hosts.take_on(node, self._problem.variants[variant].accelerators)
            self.shares[node, variant] += 1

    def _may_pay(self, variant: int) -> bool:
        return all(amount <= self._left[index] for index, amount in self._uses[variant].items())
