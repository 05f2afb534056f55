"""Feasible plans from requested counts: what limits and nodes don't allow is cut, least important first."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

from controller.planning.engine.rooms import Hosts, Rooms
from controller.planning.problem import PlacementProblem, Solution, bins_of, free_after_removals
from hack.fleets.rivals.view import NodeKind, RivalView


def by_priority(view: RivalView) -> list[int]:
    """Return the variants by priority, and then by descending replica size."""
    variants = view.problem.variants
    priority_of = {v: model.priority for model in view.models for v in model.variants}
    last = max(priority_of.values(), default=0) + 1

    def importance(v: int) -> tuple[int, int, str]:
        return priority_of.get(v, last), -variants[v].accelerators, variants[v].name

    return sorted(range(len(variants)), key=importance)


def by_arrival(view: RivalView) -> list[int]:
    """Return the variants by name, as their order of arrival is unknown here."""
    return list(view.by_name)


def grant(view: RivalView, counts: Sequence[int], order: Sequence[int]) -> Solution:
    """Return a plan with at most these counts, in which variants earlier in the order have precedence.

    Running replicas keep their nodes; only variants that shrink free accelerators.
    """
    allowed = within_limits(view.problem, counts, order)
    if _is_ruled(view.problem):
        return _placed_by_rules(view.problem, allowed, order)
    return _placed_by_slots(view, allowed, order)


def _placed_by_slots(view: RivalView, allowed: tuple[int, ...], order: Sequence[int]) -> Solution:
    """Return the replicas that find slots on nodes of a kind, in order.

    If the slots suffice, all of the replicas fit when the largest are placed first, regardless of importance.
    """
    variants, free = view.problem.variants, free_after_removals(view.problem, allowed)
    slots = {k: Slots(kind, free) for k, kind in enumerate(view.kinds) if kind.sizes}
    hosts = Hosts(free, {k: kind.nodes for k, kind in enumerate(view.kinds)})
    replicas, placed, shares = list(allowed), Counter[tuple[int, int]](), list[tuple[int, int, int]]()

    def put(v: int, k: int, count: int) -> int:
        """Place replicas on nodes of a kind as far as there is room, and return the number."""
        at = {(v, node): some for node, some in hosts.take_many((k,), variants[v].accelerators, count)}
        placed.update(at)
        return sum(at.values())

    for v in order:
        size = variants[v].accelerators
        unplaced = allowed[v] - len(variants[v].bound_replicas) if size else 0
        for k in view.usable[v] if unplaced > 0 else ():
            if k in slots:
                count = slots[k].take(size, unplaced)
                shares.append((v, k, count))
            else:
                count = put(v, k, unplaced)
            unplaced -= count
        replicas[v] -= max(0, unplaced)
    for v, k, count in sorted(shares, key=lambda s: (-variants[s[0]].accelerators, variants[s[0]].name)):
        replicas[v] -= count - put(v, k, count)
    placements = tuple((v, node, count) for (v, node), count in sorted(placed.items()))
    return Solution(replicas=tuple(replicas), placements=placements)


def _placed_by_rules(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> Solution:
    """Return the replicas that stay, and those that find nodes admitted by their rules, in order."""
    rooms, bins, replicas = Rooms(problem, counts), bins_of(problem), list(counts)
    for v in order:
        terms = problem.variants[v]
        if terms.accelerators and counts[v] > len(terms.bound_replicas):
            replicas[v] = len(terms.bound_replicas)
            while replicas[v] < counts[v] and rooms.take(v, bins[v], terms.pods):
                replicas[v] += 1
    placed = [(v, node, pods) for v, at in enumerate(rooms.new) for node, pods in at.items() if pods]
    return Solution(replicas=tuple(replicas), placements=tuple(sorted(placed)))


def pending_accelerators(view: RivalView, counts: Sequence[int], order: Sequence[int]) -> int:
    """Return the accelerators of the replicas that limits allow and no node has room for."""
    allowed = within_limits(view.problem, counts, order)
    got = grant(view, counts, order).replicas
    return sum(
        (allowed[v] - got[v]) * terms.accelerators_per_replica
        for v, terms in enumerate(view.problem.variants)
    )


def within_limits(problem: PlacementProblem, counts: Sequence[int], order: Sequence[int]) -> tuple[int, ...]:
    """Return the counts reduced to bounds and limits."""
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
    """Tell whether topology constraints, and not only capacity, restrict placement."""
    return any(terms.is_topology_constrained or terms.pods > 1 for terms in problem.variants)


class Slots:
    """Remaining slots for each replica size on the nodes of one bin (see `Bin`)."""

    def __init__(self, kind: NodeKind, free: Sequence[int]) -> None:
        """Count the slots of every size."""
        self._left = {size: sum([max(0, free[n]) // size for n in kind.nodes]) for size in kind.sizes}

    def take(self, accelerators: int, replicas: int) -> int:
        """Take slots for as many replicas of a size as fit; return the number."""
        smaller = [size for size in self._left if size <= accelerators]
        count = min([replicas, *(self._left[size] // (accelerators // size) for size in smaller)])
        for size in smaller:
            self._left[size] -= count * (accelerators // size)
        return count
