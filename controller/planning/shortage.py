"""What prevents one more replica of a variant: free accelerators after a plan, and who holds the rest."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from controller.planning.cluster import Node
from controller.planning.decision import BoundBy
from controller.planning.problem import PlacementProblem, Solution, bins_of, free_after_removals

OTHERS = -1
"""Pseudo-index of workloads that are not variants."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ledger:
    """The holders of the accelerators of each node after the plan is carried out."""

    free: tuple[int, ...]
    """Free accelerators per node; negative on overcommitted nodes."""

    held: tuple[tuple[tuple[int, int], ...], ...]
    """Per node: (variant or OTHERS, accelerators)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Scarcity:
    """The state of the nodes that a variant may use, when none has room for another pod."""

    bound_by: BoundBy
    nodes: tuple[int, ...]
    free: int
    """Free accelerators on all of them together."""

    largest: int
    """Total accelerators of the largest one."""

    holders: tuple[tuple[int, int], ...]
    """(variant or OTHERS, accelerators), those first that could be asked to give way: by the lowest priority,
    then the largest share. Workloads that are not variants come last.
    """


def ledger(problem: PlacementProblem, solution: Solution, nodes: Sequence[Node]) -> Ledger:
    """Return the holders and free accelerators of every node after the plan."""
    free = free_after_removals(problem, solution.replicas)
    held: list[Counter[int]] = [Counter({OTHERS: node.accelerators_used_by_others}) for node in nodes]
    for v, (terms, count) in enumerate(zip(problem.variants, solution.replicas, strict=True)):
        for places in terms.bound_replicas[max(0, len(terms.bound_replicas) - count) :]:
            for node in places:
                held[node][v] += terms.accelerators
    for v, node, count in solution.placements:
        free[node] -= count * problem.variants[v].accelerators
        held[node][v] += count * problem.variants[v].accelerators
    return Ledger(free=tuple(free), held=tuple(tuple(sorted((+holders).items())) for holders in held))


class Scarcities:
    """What prevents one more replica of each variant; computed once for variants with equal needs."""

    def __init__(
        self, problem: PlacementProblem, after: Ledger, *, nodes: Sequence[Node], priorities: Sequence[int]
    ) -> None:
        """Set up from the ledger after the plan; `priorities` are per variant, 1 is the highest."""
        self._problem = problem
        self._after = after
        self._nodes = nodes
        self._priorities = priorities
        self._bins = bins_of(problem)
        self._known: dict[tuple[tuple[int, ...], int, int], Scarcity | None] = {}

    def of(self, variant: int) -> Scarcity | None:
        """Return what prevents one more replica, or None if a node has room for a pod of it."""
        size = self._problem.variants[variant].accelerators
        if not size:
            return None
        key = (tuple(self._bins[variant]), size, self._priorities[variant])
        if key not in self._known:
            self._known[key] = self._scarcity(*key)
        return self._known[key]

    def _scarcity(self, bins: tuple[int, ...], size: int, priority: int) -> Scarcity | None:
        usable = [node for bin_ in bins for node in self._problem.bins[bin_].nodes]
        free, held = self._after.free, self._after.held
        if any(free[node] >= size for node in usable):
            return None
        total = sum(max(0, free[node]) for node in usable)
        holders: Counter[int] = Counter()
        for node in usable:
            holders.update(dict(held[node]))
        importance = dict(enumerate(self._priorities)) | {OTHERS: 0}
        sizes = [self._nodes[node].accelerators_allocatable for node in usable]
        above = {v for v, own in enumerate(self._priorities) if own < priority}
        yields = any(free[node] + sum(a for v, a in held[node] if v in above) >= size for node in usable)
        too_small = not any(there >= size for there in sizes)
        return Scarcity(
            bound_by=_bound_by(bool(usable), fragmented=total >= size, yields=yields, too_small=too_small),
            nodes=tuple(usable),
            free=total,
            largest=max(sizes, default=0),
            holders=tuple(
                sorted(holders.items(), key=lambda item: (-importance[item[0]], -item[1], item[0]))
            ),
        )


def _bound_by(has_nodes: bool, *, fragmented: bool, yields: bool, too_small: bool) -> BoundBy:
    """Return the main cause: fragmentation first, then holders of a higher priority, then node size."""
    if has_nodes and fragmented:
        return BoundBy.NODE_SIZE
    if has_nodes and yields:
        return BoundBy.PRIORITY
    return BoundBy.NODE_SIZE if has_nodes and too_small else BoundBy.ACCELERATORS
