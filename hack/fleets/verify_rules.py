"""Judge what pods ask of where other pods are: how many to a node, which to one rack, how even over zones.

Only what is new has to keep the rules: what lies there already may break them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from controller.planning.problem import NO_DOMAIN, PlacementProblem, Solution, VariantTerms


def broken_rules(problem: PlacementProblem, solution: Solution) -> Iterator[str]:
    """Yield every rule of pods that an answer breaks, in sentences."""
    new: dict[int, Counter[int]] = {}
    for v, node, count in solution.placements:
        new.setdefault(v, Counter())[node] += count
    bin_of = {node: index for index, bin_ in enumerate(problem.bins) for node in bin_.nodes}
    for v, nodes in sorted(new.items()):
        terms = problem.variants[v]
        lying = nodes + _staying(terms, solution.replicas[v])
        yield from _crowded(terms, nodes, lying)
        yield from _torn(terms, nodes, problem, bin_of)
        yield from _uneven(terms, nodes, lying, problem)


def _staying(terms: VariantTerms, replicas: int) -> Counter[int]:
    """Return the pods by node of the replicas that stay: the last ones in removal order."""
    leaving = max(0, len(terms.bound) - replicas)
    return Counter(node for places in terms.bound[leaving:] for node in places)


def _crowded(terms: VariantTerms, new: Mapping[int, int], lying: Mapping[int, int]) -> Iterator[str]:
    for node in new:
        if terms.most_per_node is not None and lying[node] > terms.most_per_node:
            yield f"{terms.name}: {lying[node]} pods on node {node}, {terms.most_per_node} are allowed"


def _torn(
    terms: VariantTerms, new: Mapping[int, int], problem: PlacementProblem, bin_of: Mapping[int, int]
) -> Iterator[str]:
    """Yield blocks that hold a part of a replica; a block is the nodes of one domain in one bin."""
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
    terms: VariantTerms, new: Mapping[int, int], lying: Mapping[int, int], problem: PlacementProblem
) -> Iterator[str]:
    """Yield zones that got a pod and are too far ahead of the one with the fewest.

    Where none is in the end, there was an order in which none was on the way: fewest first.
    """
    if terms.spread is None:
        return
    zone_of = problem.topologies[terms.spread.topology]
    pods = dict.fromkeys(terms.spread.domains, 0)
    for node, count in lying.items():
        if zone_of[node] in pods:
            pods[zone_of[node]] += count
    least = min(pods.values(), default=0)
    for zone in sorted({zone_of[node] for node in new}):
        if zone not in pods:
            yield f"{terms.name}: zone {zone} is none of those to spread over"
        elif pods[zone] - least > terms.spread.max_skew:
            yield f"{terms.name}: {pods[zone]} pods in zone {zone}, {least} where there are fewest"
