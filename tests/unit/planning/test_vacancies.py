"""Room for one more replica beside a solution, checked against brute force."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.campaign import often
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT
from support.small_problems import constrained_problem, is_possible, small_problem

from controller.planning.engine import place
from controller.planning.engine.assign import Vacancies
from controller.planning.problem import Bin, GrowthTerms, PlacementProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controller.planning.problem import Solution

    Make = Callable[[Random], PlacementProblem]

MAKERS: dict[str, Make] = {"small": small_problem, "constrained": constrained_problem}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_one_more_replica_has_a_place_if_room_is_reported(make: Make) -> None:
    """No room is reported where none exists, and a query changes nothing."""
    answers = {True: 0, False: 0}
    for seed in range(often(60)):
        problem = make(Random(seed))
        solution = place(problem, effort=EFFORT)
        vacancies = Vacancies(problem, solution)
        for v, more in _one_more(problem, solution):
            found = vacancies.has_room_for_one(v)
            answers[found] += 1
            added = solution.added or (0,) * len(problem.growth)
            assert not found or is_possible(replace(problem, limits=()), more, added), (seed, v)
            assert vacancies.has_room_for_one(v) == found, (seed, v)
    assert all(answers.values())


def _one_more(problem: PlacementProblem, solution: Solution) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Yield variants whose next replica is a new one, with the replica counts that include it."""
    for v, variant in enumerate(problem.variants):
        count = solution.replicas[v]
        if variant.accelerators and count >= len(variant.bound_replicas):
            yield v, (*solution.replicas[:v], count + 1, *solution.replicas[v + 1 :])


@pytest.mark.parametrize(("replicas", "has_room"), [(1, True), (2, False), (3, True), (4, False)])
def test_room_on_added_nodes_depends_on_the_pods_planned_on_them(replicas: int, *, has_room: bool) -> None:
    """Two replicas fill an added node of four accelerators."""
    problem = PlacementProblem(
        variants=(terms(1, size=2, upper=9),),
        free=(),
        bins=(Bin(nodes=(), sizes=(2,), variants=(0,)),),
        rows=(demand(0, replicas, (0, 1)),),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=4, price=5, limit=3),),
    )
    solution = place(problem, effort=EFFORT)
    assert solution.grown == ((0, 0, replicas),)
    assert Vacancies(problem, solution).has_room_for_one(0) == has_room
