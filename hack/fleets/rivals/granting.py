"""From counts to a possible plan: what limits and real nodes don't allow is cut, least important first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.engine.rooms import Rooms
from controller.planning.problem import Solution, bins_of
from hack.fleets.rivals.promising import named, promised

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem
    from hack.fleets.rivals.view import View


def by_priority(view: View) -> list[int]:
    """Return the variants, the most important first, among equals the largest replicas first."""
    variants = view.problem.variants
    priority_of = {v: model.priority for model in view.models for v in model.variants}
    last = max(priority_of.values(), default=0) + 1

    def importance(v: int) -> tuple[int, int, str]:
        return priority_of.get(v, last), -variants[v].accelerators, variants[v].name

    return sorted(range(len(variants)), key=importance)


def by_arrival(view: View) -> list[int]:
    """Return the variants by name: who came first is not known here."""
    return list(view.by_name)


def granted(view: View, counts: Sequence[int], order: Sequence[int]) -> Solution:
    """Return a plan with at most these counts, where those earlier in the order give way last.

    What runs already keeps its node; only what a variant wants less of makes room.
    """
    allowed = within_limits(view.problem, counts, order)
    if _is_ruled(view.problem):
        return _placed_by_rules(view.problem, allowed, order)
    return named(view, promised(view, allowed, order))


def _placed_by_rules(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> Solution:
    """Return the replicas that stay and, one after the other, those that find nodes their rules admit."""
    rooms, bins, replicas = Rooms(problem, counts), bins_of(problem), list(counts)
    for v in order:
        terms = problem.variants[v]
        if terms.accelerators and counts[v] > len(terms.bound):
            replicas[v] = len(terms.bound)
            while replicas[v] < counts[v] and rooms.take(v, bins[v], terms.pods):
                replicas[v] += 1
    placed = [(v, node, pods) for v, at in enumerate(rooms.new) for node, pods in at.items() if pods]
    return Solution(replicas=tuple(replicas), placements=tuple(sorted(placed)))


def pending(view: View, counts: Sequence[int], order: Sequence[int]) -> int:
    """Return the accelerators of the replicas that limits allow and no node has room for."""
    allowed = within_limits(view.problem, counts, order)
    got = granted(view, counts, order).replicas
    return sum(
        (allowed[v] - got[v]) * terms.accelerators_per_replica
        for v, terms in enumerate(view.problem.variants)
    )


def within_limits(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the counts within bounds and limits."""
    rows_of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    left = []
    for index, row in enumerate(problem.limits):
        left.append(row.limit - sum(amount * problem.variants[v].lower for v, amount in row.terms))
        for v, amount in row.terms:
            if amount:
                rows_of[v].append((index, amount))
    allowed = [max(t.lower, min(count, t.upper)) for t, count in zip(problem.variants, counts, strict=True)]
    for v in order:
        if v in rows_of:
            lower = problem.variants[v].lower
            more = min([allowed[v] - lower, *(max(0, left[index]) // amount for index, amount in rows_of[v])])
            for index, amount in rows_of[v]:
                left[index] -= more * amount
            allowed[v] = lower + more
    return tuple(allowed)


def _is_ruled(problem: PlacementProblem) -> bool:
    """Whether room alone does not say where pods may go."""
    return any(terms.is_topology_constrained or terms.pods > 1 for terms in problem.variants)
