"""Limit the pods of one variant on one node (core/v1 pod anti-affinity by hostname)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from controller.planning.problem import UNLIMITED_REPLICAS, PlacementProblem, VariantTerms


def bound_pods(terms: VariantTerms) -> Counter[int]:
    """Return the number of bound pods of a variant on each node."""
    return Counter(node for nodes in terms.bound_replicas for node in nodes)


def most_on_node(terms: VariantTerms, pods_on_node: int, free: int) -> int:
    """Return the maximum number of new pods on a node with some bound pods and free accelerators."""
    room = max(0, free) // terms.accelerators
    return room if terms.most_per_node is None else min(room, max(0, terms.most_per_node - pods_on_node))


def most_new_pods(
    problem: PlacementProblem, terms: VariantTerms, bins: Sequence[int], free: Sequence[int]
) -> int:
    """Return the maximum number of new pods, given the free accelerators of each node."""
    if terms.most_per_node is None:
        return UNLIMITED_REPLICAS
    there = bound_pods(terms)
    most = sum(
        most_on_node(terms, there[node], free[node]) for bin_ in bins for node in problem.bins[bin_].nodes
    )
    return most + sum(
        growth.limit * most_on_node(terms, 0, growth.accelerators)
        for growth in problem.growth
        if growth.bin in bins
    )
