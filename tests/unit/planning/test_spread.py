"""The choice of domains that get one pod more, where the solver does not choose them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT

from controller.planning.engine import place
from controller.planning.engine.demands import bins_by_domain, orders
from controller.planning.pod_rules import SpreadTerms
from controller.planning.problem import Bin, GrowthTerms, PlacementProblem

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


def _orders(problem: PlacementProblem, replicas: list[int]) -> Mapping[int, list[int]]:
    return orders(problem, bins_by_domain(problem), replicas)


def test_a_domain_gets_one_pod_more_in_proportion_to_its_room() -> None:
    """With one pod per variant, the domain with half of the room gets half of the pods."""
    found = _orders(_problem(), [1] * MODELS)
    assert all(sorted(order) == [*ROOM] for order in found.values())
    first = Counter(order[0] for order in found.values())
    assert abs(first[0] - MODELS / 2) <= 2
    assert abs(first[1] - first[2]) <= 2


def test_pods_that_every_domain_gets_reduce_its_room() -> None:
    """Three pods of a variant are one in each domain, so the smaller domains have less room left."""
    found = _orders(_problem(), [3] * (MODELS - 1) + [0])
    assert found[MODELS - 1][0] == 0


def test_a_domain_without_any_room_comes_last() -> None:
    """One more pod would have no place there."""
    full = replace(_problem(), free=(16, 0, 8))
    assert {order[-1] for order in _orders(full, [0] * MODELS).values()} == {1}


def test_a_domain_that_already_has_a_pod_gets_no_additional_one() -> None:
    """The next pod goes to another domain, which leaves the room of this one to others."""
    problem = _problem()
    held = replace(problem.variants[0], bound_replicas=((0,),), current=1)
    one = replace(problem, variants=(held, *problem.variants[1:]), free=(8, 8, 8))
    assert _orders(one, [2] + [0] * (MODELS - 1))[1][0] == 0


def test_pods_that_a_large_skew_leaves_open_reduce_the_room_of_domains() -> None:
    """Twelve pods with a skew of 20 in two large domains make the small one the emptiest."""
    problem = replace(_problem(), free=(16, 16, 8))
    large = SpreadTerms(topology=0, max_skew=20, domains=(0, 1))
    first = replace(problem.variants[0], spread=large)
    skewed = replace(problem, variants=(first, *problem.variants[1:]))
    assert _orders(skewed, [12] + [0] * (MODELS - 1))[1][0] == 2


@pytest.mark.parametrize("has_demand", [False, True])
def test_a_domain_whose_nodes_are_not_added_gets_no_pods(*, has_demand: bool) -> None:
    """A program assigns the pods, since best-fit decreasing fails by placing the size of 3 on the 4 free."""
    spread = replace(terms(10, size=2, upper=1), spread=SpreadTerms(topology=0, max_skew=1, domains=(0, 1)))
    rows = [demand(0, 1, (0, 1)), demand(1, 3, (1, 1))]
    problem = PlacementProblem(
        variants=(terms(10, size=3, upper=1), terms(10, size=2, upper=3), spread),
        bins=(
            Bin(nodes=(0, 1), sizes=(2, 3), variants=(0, 1, 2)),
            Bin(nodes=(), sizes=(2,), variants=(2,)),
        ),
        free=(4, 5),
        rows=(*rows, demand(2, 1, (2, 1), priority=0)) if has_demand else tuple(rows),
        topologies=((0, 0),),
        growth=(GrowthTerms(name="g", bin=1, accelerators=4, price=10**6, limit=3, domains=(1,)),),
    )
    assert place(problem, effort=EFFORT).replicas == (1, 3, int(has_demand))
