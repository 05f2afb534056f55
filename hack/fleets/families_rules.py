"""Fleets with topology constraints: zones to spread over, racks to stay within."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import numpy as np

from controller.planning.pod_rules import SpreadTerms
from controller.planning.problem import Bin, PlacementProblem, VariantTerms
from hack.fleets.families_loads import SKEW
from hack.fleets.fleet import (
    ACCELERATORS,
    BILLIONS,
    FleetModel,
    Mix,
    drawn_offer,
    drawn_replicas,
    fleet,
)
from hack.fleets.statement import drawn_out, problem_of

SPREAD_SHARE: Final = 0.5
"""Share of the models whose pods are spread."""

SPANNING_SHARE: Final = 0.3
"""Share of the models whose replicas span several nodes."""

PODS: Final = (2, 4)
"""Pods of such a replica, each on a whole node."""

RACK_NODES: Final = 8
_WEIGHTS_GB: Final = 810
"""Weights of the largest model, with two bytes per parameter."""


def zones(rng: np.random.Generator, size: int, *, count: int) -> PlacementProblem:
    """Return a fleet in which half of the models are spread over zones, with too few of some types."""
    asks = fleet(rng, size, Mix())
    problem = problem_of(asks, drawn_out(rng, asks, SKEW))
    zone_of = rng.integers(count, size=len(problem.free)).tolist()
    is_spread = (rng.random(size) < SPREAD_SHARE).tolist()
    domains = {v: tuple(sorted({zone_of[n] for n in b.nodes})) for b in problem.bins for v in b.variants}

    def spread(v: int, terms: VariantTerms) -> VariantTerms:
        rule = SpreadTerms(topology=0, max_skew=1, domains=domains[v])
        return replace(terms, spread=rule) if is_spread[_model(terms)] else terms

    return replace(
        problem,
        variants=tuple(spread(v, terms) for v, terms in enumerate(problem.variants)),
        bins=tuple(part for bin_ in problem.bins for part in _by_zone(bin_, zone_of)),
        topologies=(tuple(zone_of),),
    )


three_zones = partial(zones, count=3)
ten_zones = partial(zones, count=10)


def racks(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet in which 30 % of the models need two or four whole nodes in one rack."""
    asks = [
        _spanning_model(rng, ask) if rng.random() < SPANNING_SHARE else ask for ask in fleet(rng, size, Mix())
    ]
    problem = problem_of(asks, drawn_out(rng, asks, SKEW))
    # The planner has no topology except those of pods with a constraint on it.
    return replace(
        problem,
        variants=tuple(replace(terms, together=0) if terms.pods > 1 else terms for terms in problem.variants),
        topologies=(_racks(problem),),
    )


def _model(terms: VariantTerms) -> int:
    """Return the model of a variant, from its name."""
    return int(terms.name.partition("-")[0].removeprefix("m"))


def _by_zone(bin_: Bin, zone_of: list[int]) -> Iterator[Bin]:
    """Yield one bin per zone, as the planner's inventory does if any variant is spread."""
    for zone in sorted({zone_of[node] for node in bin_.nodes}):
        yield replace(bin_, nodes=tuple(node for node in bin_.nodes if zone_of[node] == zone))


def _racks(problem: PlacementProblem) -> tuple[int, ...]:
    """Return the rack of each node; nodes of one type fill one rack after the other."""
    rack_of, racks = [0] * len(problem.free), 0
    for bin_ in problem.bins:
        for turn, node in enumerate(bin_.nodes):
            rack_of[node] = racks + turn // RACK_NODES
        racks += -(-len(bin_.nodes) // RACK_NODES)
    return tuple(rack_of)


def _spanning_model(rng: np.random.Generator, ask: FleetModel) -> FleetModel:
    """Return the model with a size that no single node holds, so that its pods take whole nodes."""
    fitting = [
        (a, pods)
        for a in ACCELERATORS
        for pods in PODS
        if not a.holds(_WEIGHTS_GB, a.per_node) and a.holds(_WEIGHTS_GB, a.per_node * pods)
    ]
    kept = 1 + int(rng.integers(len(fitting)))
    chosen = sorted(rng.permutation(len(fitting))[:kept].tolist())
    offers = tuple(
        replace(
            drawn_offer(rng, a, pods * a.per_node, which=len(BILLIONS) - 1, strictness=0.0),
            pods=pods,
        )
        for a, pods in (fitting[index] for index in chosen)
    )
    needed = drawn_replicas(rng) * statistics.median(offer.amount for offer in offers)
    return replace(ask, offers=offers, requirement=math.ceil(needed) if ask.requirement else 0)
