"""Fleets designed to break greedy rules and tie-breaking, and to cover edge cases."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from controller.planning.problem import PlacementProblem
from hack.fleets.families_loads import PLENTY, SCARCE, TIGHT
from hack.fleets.fleet import (
    ACCELERATORS,
    COST_OF_A_DOLLAR,
    H100,
    AcceleratorStock,
    FleetModel,
    Mix,
    VariantOffer,
    fleet,
)
from hack.fleets.statement import problem_of, shared_out

_L40S, _A100 = ACCELERATORS[1], ACCELERATORS[2]
_PINNED_EVERY = 2


def regret(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet in which one of three models has the largest regret, but uses the room of both others.

    There are two A100 for every three models: the first needs both (10, else 19), the others one each (10,
    else 18).
    """
    greedy = _ask_of((_A100, 2, 10), (_L40S, 1, 19))
    modest = _ask_of((_A100, 1, 10), (_L40S, 1, 18))
    asks = [greedy if index % 3 == 0 else modest for index in range(size)]
    nodes = _nodes(a100=-(-2 * size // 24), l40s=-(-size // 8))
    order = rng.permutation(size).tolist()
    return problem_of([asks[index] for index in order], nodes)


def dominant(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet in which one model wants as much as all others together."""
    asks = fleet(rng, size, Mix())
    value = sum(ask.cheapest[0] for ask in asks[1:])
    giant = next((ask for ask in asks if ask.requirement), asks[0])
    factor = max(1, value // max(1, giant.cheapest[0]))
    asks[0] = replace(giant, requirement=giant.requirement * factor, priority=0)
    return problem_of(asks, shared_out(asks, TIGHT))


def equal_ratios(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet with the same cost per capacity everywhere: variants differ only by rounding."""
    asks = [
        replace(ask, offers=tuple(replace(offer, amount=offer.cost // 1000) for offer in ask.offers))
        for ask in fleet(rng, size, Mix())
    ]
    requirements = rng.integers(1, 60_000, size).tolist()
    asks = [replace(ask, requirement=need) for ask, need in zip(asks, requirements, strict=True)]
    return problem_of(asks, shared_out(asks, TIGHT))


def ties(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet of identical models, with room for half of them."""
    asks = [fleet(rng, 1, Mix())[0]] * size
    asks = [replace(ask, is_warm=True, requirement=max(1, ask.requirement)) for ask in asks]
    return problem_of(asks, shared_out(asks, (0.5,) * 5))


def idle(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet without demand, in which most models still keep one replica."""
    asks = [replace(ask, requirement=0) for ask in fleet(rng, size, Mix())]
    return problem_of(asks, _nodes(size))


def pinned(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet in which every other model must stay as it is: minimum equals maximum."""
    asks = fleet(rng, size, Mix())
    problem = problem_of(asks, shared_out(asks, PLENTY))
    free = list(problem.free)
    host_of = {v: bin_.nodes for bin_ in problem.bins for v in bin_.variants}
    variants = list(problem.variants)
    held = {v for row in problem.rows if row.model % _PINNED_EVERY == 0 for v, _ in row.terms}
    for v in sorted(held):
        terms = variants[v]
        node = next((n for n in host_of[v] if free[n] >= terms.accelerators), None)
        if node is not None:
            free[node] -= terms.accelerators
            variants[v] = replace(terms, current=1, bound_replicas=((node,),), ready=1, lower=1, upper=1)
    return replace(problem, variants=tuple(variants), free=tuple(free))


def one_type(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet with H100 only, for 60 % of the demand: only the shares matter."""
    asks = [
        replace(
            ask,
            offers=tuple(
                replace(offer, accelerator=H100, cost=H100.cost * offer.size) for offer in ask.offers
            ),
        )
        for ask in fleet(rng, size, Mix())
    ]
    return problem_of(asks, shared_out(asks, SCARCE))


def one_node_each(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet with a single node of every type, whatever the demand."""
    return problem_of(fleet(rng, size, Mix()), _nodes())


def _ask_of(*offers: tuple[AcceleratorStock, int, int]) -> FleetModel:
    """Return a model that one replica of any offer serves, given as (accelerator, size, dollars)."""
    return FleetModel(
        offers=tuple(
            VariantOffer(accelerator=accelerator, size=size, amount=1, cost=dollars * COST_OF_A_DOLLAR)
            for accelerator, size, dollars in offers
        ),
        requirement=1,
        priority=0,
        is_warm=False,
    )


def _nodes(every: int = 1, **counts: int) -> dict[str, list[int]]:
    """Return a number of nodes for each type."""
    return {a.name: [a.per_node] * counts.get(a.name, every) for a in ACCELERATORS}
