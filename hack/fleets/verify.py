"""Feasibility of solutions; shares no code with the engines that find them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controller.planning.problem import NO_DOMAIN, PlacementProblem, Solution, VariantTerms


def wrong(problem: PlacementProblem, solution: Solution) -> list[str]:
    """Return all constraint violations of a solution, as messages."""
    if len(solution.replicas) != len(problem.variants):
        return [f"{len(solution.replicas)} counts for {len(problem.variants)} variants"]
    return [
        *_bounds(problem, solution),
        *_limits(problem, solution),
        *_places(problem, solution),
        *_broken_rules(problem, solution),
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
        unplaced = (
            terms.pods * max(0, solution.replicas[v] - len(terms.bound_replicas)) if terms.accelerators else 0
        )
        if placed[v] != unplaced:
            yield f"{terms.name}: {placed[v]} places for {unplaced} pods"


def _room(problem: PlacementProblem, solution: Solution) -> list[int]:
    """Return the free accelerators of each node after the removals."""
    room = list(problem.free)
    for terms, count in zip(problem.variants, solution.replicas, strict=True):
        for nodes in terms.bound_replicas[: max(0, len(terms.bound_replicas) - count)]:
            for node in nodes:
                room[node] += terms.accelerators
    return room


def _broken_rules(problem: PlacementProblem, solution: Solution) -> Iterator[str]:
    """Yield violations of the pods' rules: pods per node, whole replicas per rack, and even spread.

    The rules apply to new pods only; existing pods may violate them.
    """
    new: dict[int, Counter[int]] = {}
    for v, node, count in solution.placements:
        new.setdefault(v, Counter())[node] += count
    bin_of = {node: index for index, bin_ in enumerate(problem.bins) for node in bin_.nodes}
    for v, nodes in sorted(new.items()):
        terms = problem.variants[v]
        pods_on_node = nodes + _staying_pods(terms, solution.replicas[v])
        yield from _crowded_nodes(terms, nodes, pods_on_node)
        yield from _torn_blocks(terms, nodes, problem, bin_of)
        yield from _uneven(terms, nodes, pods_on_node, problem)


def _staying_pods(terms: VariantTerms, replicas: int) -> Counter[int]:
    """Return the pods by node of the replicas that stay: the last ones in removal order."""
    leaving = max(0, len(terms.bound_replicas) - replicas)
    return Counter(node for places in terms.bound_replicas[leaving:] for node in places)


def _crowded_nodes(
    terms: VariantTerms, new: Mapping[int, int], pods_on_node: Mapping[int, int]
) -> Iterator[str]:
    if terms.most_per_node is None:
        return
    most = terms.most_per_node.pods
    for node in new:
        if pods_on_node[node] > most:
            yield f"{terms.name}: {pods_on_node[node]} pods on node {node}, {most} are allowed"


def _torn_blocks(
    terms: VariantTerms, new: Mapping[int, int], problem: PlacementProblem, bin_of: Mapping[int, int]
) -> Iterator[str]:
    """Yield blocks with a part of a replica; a block is the nodes of one domain in one bin."""
    if terms.together is None:
        return
    held = Counter[tuple[int, int]]()
    for node, count in new.items():
        held[problem.topologies[terms.together][node], bin_of.get(node, -1)] += count
    for (domain, _), count in held.items():
        if domain == NO_DOMAIN:
            yield f"{terms.name}: {count} pods where no rack is known"
        elif count % terms.pods:
            yield f"{terms.name}: {count} pods in rack {domain}, a replica has {terms.pods} together"


def _uneven(
    terms: VariantTerms, new: Mapping[int, int], pods_on_node: Mapping[int, int], problem: PlacementProblem
) -> Iterator[str]:
    """Yield zones that got a new pod and exceed the zone with the fewest pods by too much.

    If the final state satisfies this, so do all intermediate ones when zones with the fewest pods are filled
    first.
    """
    spread = terms.spread
    if spread is None:
        return
    zone_of = problem.topologies[spread.topology]
    pods = dict.fromkeys(spread.domains, 0)
    for node, count in pods_on_node.items():
        if zone_of[node] in pods:
            pods[zone_of[node]] += count
    least = min(pods.values(), default=0)
    for zone in sorted({zone_of[node] for node in new}):
        if zone not in pods:
            yield f"{terms.name}: zone {zone} is none of those to spread over"
        elif pods[zone] - least > spread.max_skew:
            yield f"{terms.name}: {pods[zone]} pods in zone {zone}, {least} where there are fewest"
