"""The placement problem for a fleet and an inventory, as the planner would formulate it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from controller.planning.problem import Bin, CoverRow, PlacementProblem, Stage, VariantTerms
from hack.fleets.fleet import ACCELERATORS, FleetModel, VariantOffer, replicas_for

Nodes = Mapping[str, Sequence[int]]
"""Accelerators of each node, by type."""


def problem_of(asks: Sequence[FleetModel], nodes: Nodes) -> PlacementProblem:
    """Return the problem of placing the fleet on these nodes, with nothing running and no start prices."""
    rows: list[CoverRow] = []
    variants: list[VariantTerms] = []
    for model, ask in enumerate(asks):
        rows += _rows(ask, model, first=len(variants))
        variants += (
            _terms(ask, offer, f"m{model:05}-v{number}-{offer.accelerator.name}")
            for number, offer in enumerate(ask.offers)
        )
    offers = [offer for ask in asks for offer in ask.offers]
    free = [room for accelerator in ACCELERATORS for room in nodes[accelerator.name]]
    return PlacementProblem(
        variants=tuple(variants), free=tuple(free), bins=tuple(_bins(offers, nodes)), rows=tuple(rows)
    )


def shared_out(asks: Sequence[FleetModel], factors: Sequence[float]) -> Nodes:
    """Return nodes for each model's preferred variant, times a factor per type; at least one node each."""
    liked = dict.fromkeys((accelerator.name for accelerator in ACCELERATORS), 0)
    for ask in asks:
        _, offer = ask.cheapest
        liked[offer.accelerator.name] += replicas_for(offer, ask.requirement) * offer.size
    return {
        accelerator.name: [accelerator.per_node]
        * max(1, math.ceil(liked[accelerator.name] * factor / accelerator.per_node))
        for accelerator, factor in zip(ACCELERATORS, factors, strict=True)
    }


def drawn_out(rng: np.random.Generator, asks: Sequence[FleetModel], factors: Sequence[float]) -> Nodes:
    """Return nodes as `shared_out` does, with the factors in random order of the types."""
    return shared_out(asks, [factors[index] for index in rng.permutation(len(factors)).tolist()])


def endless(asks: Sequence[FleetModel]) -> Nodes:
    """Return one node of each type that has room for everything at once."""
    most = {accelerator.name: accelerator.per_node for accelerator in ACCELERATORS}
    for ask in asks:
        for offer in ask.offers:
            most[offer.accelerator.name] += offer.accelerator.per_node * (
                1 + replicas_for(offer, ask.requirement)
            )
    return {name: [room] for name, room in most.items()}


def _rows(ask: FleetModel, model: int, *, first: int) -> Iterator[CoverRow]:
    name = f"m{model:05}"
    numbered = list(enumerate(ask.offers, start=first))
    if ask.is_warm:
        yield CoverRow(
            name=name,
            stage=Stage.MINIMUM,
            priority=ask.priority,
            model=model,
            requirement=1,
            terms=tuple((v, 1) for v, _ in numbered),
        )
    if ask.requirement:
        yield CoverRow(
            name=name,
            stage=Stage.DEMAND,
            priority=ask.priority,
            model=model,
            requirement=ask.requirement,
            terms=tuple((v, offer.amount) for v, offer in numbered),
            weight=max(1, -(-ask.cheapest[0] // 1000)),  # a per mille of the cost of serving all of it
        )


def _terms(ask: FleetModel, offer: VariantOffer, name: str) -> VariantTerms:
    return VariantTerms(
        name=name,
        accelerators=offer.size // offer.pods,
        cost=offer.cost,
        start_price=0,
        stop_price=0,
        current=0,
        bound_replicas=(),
        ready=0,
        lower=0,
        upper=max(replicas_for(offer, ask.requirement), int(ask.is_warm)),
        pods=offer.pods,
    )


def _bins(offers: Sequence[VariantOffer], nodes: Nodes) -> Iterator[Bin]:
    """Yield one bin per type."""
    first = 0
    for accelerator in ACCELERATORS:
        here = tuple(range(first, first + len(nodes[accelerator.name])))
        users = tuple(v for v, offer in enumerate(offers) if offer.accelerator is accelerator)
        sizes = tuple(sorted({offers[v].size // offers[v].pods for v in users}))
        first += len(here)
        if users:
            yield Bin(nodes=here, sizes=sizes, variants=users)
