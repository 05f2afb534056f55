"""Which domains get one pod more where the solver does not choose them."""

from __future__ import annotations

from collections import Counter

from support.plain_problems import demand, terms

from controller.planning.engine.spread import Turns
from controller.planning.problem import Bin, PlacementProblem

ROOM = {0: 16, 1: 8, 2: 8}
"""Free accelerators of each domain, on one node each."""

MODELS = 40


def _problem() -> PlacementProblem:
    return PlacementProblem(
        variants=tuple(terms(10) for _ in range(MODELS)),
        bins=tuple(Bin(nodes=(d,), sizes=(1,), variants=tuple(range(MODELS))) for d in ROOM),
        free=tuple(ROOM.values()),
        rows=tuple(demand(model, 3, (model, 1)) for model in range(MODELS)),
    )


def test_a_domain_gets_one_pod_more_in_proportion_to_its_room() -> None:
    """With one pod left over for each variant, the domain with half of the room gets half of them."""
    problem = _problem()
    turns = Turns(problem)
    orders = [turns.order(own, {d: (d,) for d in ROOM}) for own in problem.variants]
    assert all(sorted(order) == [*ROOM] for order in orders)
    first = Counter(order[0] for order in orders)
    last = Counter(order[-1] for order in orders)
    assert abs(first[0] - MODELS / 2) <= 2
    assert abs(first[1] - first[2]) <= 2
    assert last[0] < min(last[1], last[2])


def test_a_domain_without_any_room_comes_last() -> None:
    """Where nothing is free, one pod more would find no place."""
    problem = _problem()
    turns = Turns(PlacementProblem(variants=problem.variants, bins=problem.bins, free=(16, 0, 8), rows=()))
    for own in problem.variants[1:10]:
        assert turns.order(own, {d: (d,) for d in ROOM})[-1] == 1
