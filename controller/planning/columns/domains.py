"""Over what the pods of variants are spread, and how many of them lie there.

A place is a variant in one domain; a variant that is not spread has one place.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import UNLIMITED_REPLICAS, bins_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.resources import Resources
    from controller.planning.problem import PlacementProblem, SpreadTerms, VariantTerms


FULLY_TURNED = 3
"""Among so many domains one way to begin with each of them is every way."""


MOST_TURNS = 27
"""Up to how many ways a model's variants begin each with a domain of its own, in all combinations."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Domains:
    """Over what n variants spread, which all have as many domains."""

    max_skew: Integers
    """(n,)."""

    lying: Integers
    """(n, domains): bound pods when all stay."""

    counted: Integers
    """(n, most bound replicas + 1, domains): pods that count against the most slots when so many stay."""


def spread_over(terms: VariantTerms) -> int:
    """Return over how many domains a variant spreads its pods; 0 for none."""
    return len(terms.spread.domains) if terms.spread and terms.accelerators else 0


def knows_all_ways(members: Sequence[VariantTerms]) -> bool:
    """Tell whether the ways to spread a model's pods that become columns are all that there are."""
    is_even = all(terms.spread is None or terms.spread.max_skew == 1 for terms in members)
    domains = [max(1, spread_over(terms)) for terms in members]
    return is_even and max(domains) <= FULLY_TURNED and math.prod(domains) <= MOST_TURNS


def domains_of(problem: PlacementProblem, resources: Resources, variants: Sequence[int]) -> Domains | None:
    """Return over what the variants spread, or None when they don't."""
    terms = [problem.variants[v] for v in variants]
    if not all(spread_over(t) for t in terms):
        return None
    lying = np.array([_lying(problem, t, t.bound).tolist() for t in terms], dtype=np.int64)
    most = max(len(t.bound) for t in terms)
    counted = np.zeros((len(terms), most + 1, lying.shape[1]), dtype=np.int64)
    for index, v in enumerate(variants):
        bound = terms[index].bound
        kept = [nodes if bins else () for nodes, bins in zip(bound, resources.counted[v], strict=True)]
        for stay in range(1, most + 1):
            counted[index, stay] = _lying(problem, terms[index], kept[max(0, len(kept) - stay) :])
    return Domains(
        max_skew=np.array([t.spread.max_skew for t in terms if t.spread], dtype=np.int64),
        lying=lying,
        counted=counted,
    )


def _lying(problem: PlacementProblem, terms: VariantTerms, places: Sequence[Sequence[int]]) -> Integers:
    """Return how many pods lie in each domain, (domains,)."""
    counts = np.zeros(len(terms.spread.domains) if terms.spread else 0, dtype=np.int64)
    for nodes in places if terms.spread else ():
        for node in nodes:
            domain = problem.topologies[terms.spread.topology][node] if terms.spread else 0
            if terms.spread and domain in terms.spread.domains:
                counts[terms.spread.domains.index(domain)] += 1
    return counts


def most_even(problem: PlacementProblem) -> Integers:
    """Return how many replicas there could ever be where some domain takes no new pod, (variants,)."""
    most = np.full(len(problem.variants), UNLIMITED_REPLICAS, dtype=np.int64)
    for v, (terms, bins) in enumerate(zip(problem.variants, bins_of(problem), strict=True)):
        if terms.spread is None or not terms.accelerators:
            continue
        reachable = _reachable(problem, bins, terms.spread)
        is_open = [domain in reachable for domain in terms.spread.domains]
        if is_open and not all(is_open):
            lying = _lying(problem, terms, terms.bound).tolist()
            level = terms.spread.max_skew + min(
                count for count, goes in zip(lying, is_open, strict=True) if not goes
            )
            pods = sum(
                max(count, level) if goes else count for count, goes in zip(lying, is_open, strict=True)
            )
            most[v] = (pods + len(terms.bound) * terms.pods - sum(lying)) // terms.pods
    return most


def _reachable(problem: PlacementProblem, bins: Sequence[int], spread: SpreadTerms) -> frozenset[int]:
    """Return the domains where new pods may go that may use some bins; each bin's nodes are in one."""
    grown = {growth.domains[spread.topology] for growth in problem.growth if growth.bin in bins}
    domains = problem.topologies[spread.topology]
    return frozenset({domains[problem.bins[b].nodes[0]] for b in bins if problem.bins[b].nodes} | grown)
