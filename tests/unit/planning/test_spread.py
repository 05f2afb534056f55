"""Which domains get one pod more where the solver does not choose them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from support.plain_problems import demand, terms

from controller.planning.engine.spread import orders
from controller.planning.problem import Bin, PlacementProblem, SpreadTerms

ROOM = {0: 16, 1: 8, 2: 8}
"""Free accelerators of each domain, on one node each."""

SPREAD = SpreadTerms(topology=0, max_skew=1, domains=tuple(ROOM))
MODELS = 40


def _problem() -> PlacementProblem:
    return PlacementProblem(
        variants=tuple(replace(terms(10), spread=SPREAD) for _ in range(MODELS)),
        bins=tuple(Bin(nodes=(d,), sizes=(1,), variants=tuple(range(MODELS))) for d in ROOM),
        free=tuple(ROOM.values()),
        rows=tuple(demand(model, 3, (model, 1)) for model in range(MODELS)),
        topologies=(tuple(ROOM),),
    )


def test_a_domain_gets_one_pod_more_in_proportion_to_its_room() -> None:
    """With one pod for each variant, the domain with half of the room gets half of them."""
    found = orders(_problem(), dict.fromkeys(range(MODELS), 1))
    assert all(sorted(order) == [*ROOM] for order in found.values())
    first = Counter(order[0] for order in found.values())
    assert abs(first[0] - MODELS / 2) <= 2
    assert abs(first[1] - first[2]) <= 2


def test_what_every_domain_gets_counts_as_well() -> None:
    """Three pods of each variant are one in each domain: the smaller ones have less room left."""
    found = orders(_problem(), dict.fromkeys(range(MODELS - 1), 3))
    assert found[MODELS - 1][0] == 0


def test_a_domain_without_any_room_comes_last() -> None:
    """Where nothing is free, one pod more would find no place."""
    full = replace(_problem(), free=(16, 0, 8))
    assert {order[-1] for order in orders(full, {}).values()} == {1}
