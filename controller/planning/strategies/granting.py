"""From counts to a possible plan: what limits and real nodes don't allow is cut, least important first."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import TYPE_CHECKING

from controller.planning.housing import house
from controller.planning.problem import Solution, freed
from controller.planning.strategies.asking import askings
from controller.planning.strategies.pools import kinds, kinds_of
from controller.planning.strategies.rooms import Shelf, Slots

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem


def by_priority(problem: PlacementProblem) -> list[int]:
    """Return the variants, the most important first, among equals the largest replicas first."""
    priority_of = {v: model.priority for model in askings(problem) for v in model.variants}
    last = max(priority_of.values(), default=0) + 1

    def importance(v: int) -> tuple[int, int, str]:
        return priority_of.get(v, last), -problem.variants[v].accelerators, problem.variants[v].name

    return sorted(range(len(problem.variants)), key=importance)


def by_arrival(problem: PlacementProblem) -> list[int]:
    """Return the variants by name: who came first is not known here."""
    return sorted(range(len(problem.variants)), key=lambda v: problem.variants[v].name)


def granted(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> Solution:
    """Return a plan with at most these counts, where those earlier in the order give way last.

    What runs already keeps its node; only what a variant wants less of makes room.
    """
    allowed = _allowed(problem, counts, order)
    if any(terms.is_choosy or terms.pods > 1 for terms in problem.variants):
        housed = house(problem, allowed, order=order)
        return Solution(replicas=housed.replicas, placements=housed.placements)
    placements = _placed(problem, allowed, order)
    found = Counter[int]()
    for v, _, count in placements:
        found[v] += count
    replicas = tuple(
        min(allowed[v], len(terms.bound)) + found[v] if terms.accelerators else allowed[v]
        for v, terms in enumerate(problem.variants)
    )
    return Solution(replicas=replicas, placements=placements)


def pending(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> int:
    """Return the accelerators of the replicas that limits allow and no node has room for."""
    allowed = _allowed(problem, counts, order)
    got = granted(problem, counts, order).replicas
    return sum(
        (allowed[v] - got[v]) * terms.accelerators_per_replica for v, terms in enumerate(problem.variants)
    )


def _allowed(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the counts within bounds and limits."""
    rows_of: dict[int, list[tuple[int, int]]] = defaultdict(list)
    left = []
    for index, row in enumerate(problem.limits):
        left.append(row.limit - sum(amount * problem.variants[v].lower for v, amount in row.terms))
        for v, amount in row.terms:
            if amount:
                rows_of[v].append((index, amount))
    allowed = [terms.lower for terms in problem.variants]
    for v in order:
        terms = problem.variants[v]
        more = max(0, min(counts[v], terms.upper) - terms.lower)
        more = min([more, *(max(0, left[index]) // amount for index, amount in rows_of[v])])
        for index, amount in rows_of[v]:
            left[index] -= more * amount
        allowed[v] += more
    return tuple(allowed)


def _placed(
    problem: PlacementProblem, allowed: tuple[int, ...], order: Sequence[int]
) -> tuple[tuple[int, int, int], ...]:
    """Return (variant, node, replicas) of new replicas, as far as there is room."""
    free = freed(problem, allowed)
    known = kinds(problem)
    usable = kinds_of(problem, known)
    slots = {k: Slots(kind, free) for k, kind in enumerate(known) if kind.sizes}
    shelves = [Shelf(kind.nodes, free) for kind in known]
    placed = Counter[tuple[int, int]]()
    promised: list[tuple[int, int, int]] = []
    for v in order:
        terms = problem.variants[v]
        wanted = max(0, allowed[v] - len(terms.bound)) if terms.accelerators else 0
        for k in usable[v]:
            if k in slots:
                count = slots[k].take(terms.accelerators, wanted)
                promised.append((v, k, count))
            else:
                at = shelves[k].put(terms.accelerators, wanted)
                count = sum(replicas for _, replicas in at)
                placed.update({(v, node): replicas for node, replicas in at})
            wanted -= count
    # Slots say that all of them fit when the largest are placed first, whoever is more important.
    for v, k, count in sorted(promised, key=lambda item: _largest_first(problem, item[0])):
        for node, replicas in shelves[k].put(problem.variants[v].accelerators, count):
            placed[v, node] += replicas
    return tuple((v, node, count) for (v, node), count in sorted(placed.items()))


def _largest_first(problem: PlacementProblem, variant: int) -> tuple[int, str]:
    return -problem.variants[variant].accelerators, problem.variants[variant].name
