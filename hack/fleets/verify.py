"""Judge answers: that they can be carried out. Shares no code with whatever found them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from controller.planning.problem import PlacementProblem, Solution
from hack.fleets.verify_rules import broken_rules


def wrong(problem: PlacementProblem, solution: Solution) -> list[str]:
    """Return everything that is impossible about an answer, in sentences."""
    if len(solution.replicas) != len(problem.variants):
        return [f"{len(solution.replicas)} counts for {len(problem.variants)} variants"]
    return [
        *_bounds(problem, solution),
        *_limits(problem, solution),
        *_places(problem, solution),
        *broken_rules(problem, solution),
    ]


def _bounds(problem: PlacementProblem, solution: Solution) -> Iterator[str]:
    for terms, count in zip(problem.variants, solution.replicas, strict=True):
        if not terms.lower <= count <= terms.upper:
            yield f"{terms.name}: {count} replicas, allowed are {terms.lower} to {terms.upper}"
    if solution.grown or solution.added:
        yield "nodes are to be added though none can be"


def _limits(problem: PlacementProblem, solution: Solution) -> Iterator[str]:
    for row in problem.limits:
        used = sum(solution.replicas[v] * amount for v, amount in row.terms)
        if used > row.limit:
            yield f"{row.name}: {used} of {row.limit} used"


def _places(problem: PlacementProblem, solution: Solution) -> Iterator[str]:
    users = {node: frozenset[int]() for node in range(len(problem.free))}
    known: dict[int, frozenset[int]] = {}
    for bin_ in problem.bins:
        allowed = known.setdefault(id(bin_.variants), frozenset(bin_.variants))
        users.update(dict.fromkeys(bin_.nodes, allowed))
    room = _room(problem, solution)
    placed = Counter[int]()
    for v, node, count in solution.placements:
        if v not in users[node]:
            yield f"{problem.variants[v].name}: may not go to node {node}"
        room[node] -= count * problem.variants[v].accelerators
        placed[v] += count
        if count <= 0:
            yield f"{problem.variants[v].name}: {count} replicas placed on node {node}"
    for node in {node for _, node, _ in solution.placements}:
        if room[node] < 0:
            yield f"node {node}: {-room[node]} accelerators too many"
    for v, terms in enumerate(problem.variants):
        homeless = terms.pods * max(0, solution.replicas[v] - len(terms.bound)) if terms.accelerators else 0
        if placed[v] != homeless:
            yield f"{terms.name}: {placed[v]} places for {homeless} pods"


def _room(problem: PlacementProblem, solution: Solution) -> list[int]:
    """Return what is free on each node once those have gone that are wanted no more."""
    room = list(problem.free)
    for terms, count in zip(problem.variants, solution.replicas, strict=True):
        for nodes in terms.bound[: max(0, len(terms.bound) - count)]:
            for node in nodes:
                room[node] += terms.accelerators
    return room
