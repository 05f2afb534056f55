"""Where the pods of a mix go that are spread over domains: each way is a column of its own.

A place is a variant in one domain; a variant that is not spread has one place. New pods fill the domains with
the fewest pods first, as the scheduler makes them. What is left then may go to any of those that are equally
full. Of models with few mixes every way to begin is a column; of others there is one, which begins elsewhere
for each model, and one at the prices. If more than one may be ahead, there are also ways that make the most
of it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import UNLIMITED_REPLICAS, bins_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort
    from controller.planning.columns.resources import Resources
    from controller.planning.problem import PlacementProblem, SpreadTerms, VariantTerms


FULLY_TURNED = 3
"""Among so many domains one way to begin with each of them is every way."""

_NEVER = 10**12
"""More pods than there are anywhere."""

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


def laid_out(
    cohort: Cohort, mixes: Integers, place_price: Floats | None = None
) -> tuple[Integers, Floats, Integers | None]:
    """Return mixes (n, j, w) in some ways to spread them, what each asks, and its new pods, at each place.

    Given the price of a pod at each place, (n, places), one way begins with the cheapest domains: where none
    may be ahead of the others by more than one it is the cheapest there is. Without anything to spread there
    is one way for each mix, and the new pods are None.
    """
    if not any(cohort.domains):
        counted = mixes * cohort.units[:, None, :] - cohort.settled[:, None, :]
        return mixes, np.maximum(counted, 0).astype(np.float64), None
    is_lopsided = any(found is not None and bool((found.max_skew > 1).any()) for found in cohort.domains)
    orders = list(_orders(cohort))
    if place_price is not None:
        orders.append(np.argsort(place_price, axis=1, kind="stable"))
    ways = [
        _way(cohort, mixes, order=order, is_lopsided=lopsided)
        for lopsided in ((False, True) if is_lopsided else (False,))
        for order in orders
    ]
    asked: Floats = np.concatenate([way[0] for way in ways], axis=1).astype(np.float64)
    new: Integers = np.concatenate([way[1] for way in ways], axis=1)
    return np.tile(mixes, (1, len(ways), 1)), asked, new


def _orders(cohort: Cohort) -> Iterator[Integers]:
    """Yield in which orders each model's places may come, (n, places): all that matter, or just one.

    Each model begins elsewhere: with one way for each, all domains are used all the same.
    """
    model = np.arange(len(cohort.variants))[:, None]
    counts = [found.lying.shape[1] if found else 1 for found in cohort.domains]
    starts = np.cumsum([0, *counts[:-1]]).tolist()
    for turns in product(*map(range, counts)) if cohort.is_enumerable else ((0,) * len(counts),):
        parts = zip(starts, counts, turns, strict=True)
        yield np.concatenate(
            [start + (np.arange(count)[None, :] + turn + model) % count for start, count, turn in parts],
            axis=1,
        )


def _way(cohort: Cohort, mixes: Integers, *, order: Integers, is_lopsided: bool) -> tuple[Integers, Integers]:
    """Return what one way asks, and its new pods, at each place: both (n, j, places).

    The order (n, places) says which of equally full domains come first.
    """
    rank = np.argsort(order, axis=1)
    asked, new, place = [], [], 0
    for position, domains in enumerate(cohort.domains):
        mix, units = mixes[:, :, position], cohort.units[:, position, None]
        more = np.maximum(mix - cohort.bound[:, position, None], 0) * units
        if domains is None:
            asked.append(np.maximum(mix * units - cohort.settled[:, position, None], 0)[:, :, None])
            new.append(more[:, :, None])
            place += 1
            continue
        skew = domains.max_skew if is_lopsided else np.ones_like(domains.max_skew)
        own = slice(place, place + domains.lying.shape[1])
        place = own.stop
        open_lying, most = _open(domains, cohort.closed[:, own])
        spread = _spread(open_lying, more, skew, most, np.argsort(rank[:, own], axis=1))
        stay = np.minimum(mix, domains.counted.shape[1] - 1)
        asked.append(domains.counted[np.arange(len(mix))[:, None], stay] + spread)
        new.append(spread)
    return np.concatenate(asked, axis=2), np.concatenate(new, axis=2)


def _open(domains: Domains, closed: Booleans) -> tuple[Integers, Integers]:
    """Return the pods that lie in each domain, (n, domains), and the most in one that gets new ones, (n,).

    Where no new pod can go there lie as many as are never reached; what lies there holds the others down.
    """
    fewest = np.where(closed, domains.lying, _NEVER).min(axis=1)
    lying: Integers = np.where(closed & ~closed.all(axis=1, keepdims=True), _NEVER, domains.lying)
    return lying, np.where(fewest < _NEVER, fewest + domains.max_skew, _NEVER)


def _spread(lying: Integers, more: Integers, skew: Integers, most: Integers, order: Integers) -> Integers:
    """Return the new pods in each domain, (n, j, domains), given those that lie there (n, domains).

    `more` pods (n, j) fill up to a level that is the highest one or `skew` below what they reach at most; the
    rest goes to one domain after the other, in their order (n, domains). What exceeds the `most` of every
    domain goes to the fullest, which is one that is closed, if any is.
    """
    lowest = np.sort(lying, axis=1).cumsum(axis=1)
    ranks = np.arange(1, lying.shape[1] + 1)
    # To fill all domains to a level takes as much as the fullest set of them that it exceeds.
    reached = ((more[:, :, None] + lowest[:, None, :]) // ranks).min(axis=2)
    is_even = np.maximum(reached[:, :, None] - lying[:, None, :], 0).sum(axis=2) == more
    top = np.where(is_even, reached, reached + 1)
    level = np.maximum(top - skew[:, None], lying.min(axis=1)[:, None])
    level = np.minimum(np.minimum(level, reached), most[:, None])
    filled = np.maximum(level[:, :, None] - lying[:, None, :], 0)
    top = np.minimum(level + skew[:, None], most[:, None])
    room = np.maximum(top[:, :, None] - lying[:, None, :] - filled, 0)
    in_order = np.broadcast_to(order[:, None, :], room.shape)
    room = np.take_along_axis(room, in_order, axis=2)
    left = more - filled.sum(axis=2)
    given = np.clip(left[:, :, None] - (np.cumsum(room, axis=2) - room), 0, room)
    spread: Integers = filled
    np.put_along_axis(spread, in_order, np.take_along_axis(filled, in_order, axis=2) + given, axis=2)
    model = np.arange(len(lying))
    spread[model, :, lying.argmax(axis=1)] += (more - spread.sum(axis=2))[model]
    return spread
