"""Values and bounds that the compact formulation reports, even if its search is interrupted."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from support.campaign import often
from support.compact import place
from support.plain_problems import demand, terms
from support.planning_builders import EFFORT
from support.small_problems import constrained_problem, rank, small_problem

from controller.planning.problem import Bin, GrowthTerms, PlacementProblem

EFFORTS = (1e-3, 3e-3, 1e-2)
SEEDS = range(5160, 5160 + often(25))
GROWING_SEEDS = (179, 396, *range(400, 400 + often(20)))


def _problems() -> list[PlacementProblem]:
    return [make(Random(seed)) for seed in SEEDS for make in (small_problem, constrained_problem)]


def _growing() -> list[PlacementProblem]:
    """Return problems in which replicas free room and nodes could be added."""
    made = [small_problem(Random(seed)) for seed in GROWING_SEEDS]
    return [
        replace(problem, growth=tuple(replace(growth, limit=3) for growth in problem.growth))
        for problem in made
    ]


def test_reported_values_are_those_of_the_replicas() -> None:
    """At each level the value equals an independent computation, and the bound does not exceed it."""
    for problem in _problems():
        for effort in EFFORTS:
            made = place(problem, effort=replace(EFFORT, deterministic_seconds=effort))
            added = made.added or (0,) * len(problem.growth)
            assert [proof.value for proof in made.proofs] == rank(problem, made.replicas, added)
            assert all(proof.bound <= proof.value for proof in made.proofs)


def test_no_node_is_added_that_only_the_greedy_order_needs() -> None:
    """Placed one by one, both small ones share a node, and a large one uses a new node at no cost."""
    problem = PlacementProblem(
        variants=(terms(1, upper=2, name="small"), terms(1, size=2, upper=2, name="large")),
        free=(3, 3),
        bins=(Bin(nodes=(0, 1), sizes=(1, 2), variants=(0, 1)),),
        rows=tuple(demand(v, 2, (v, 1), priority=v) for v in (0, 1)),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=4, price=0, limit=1),),
    )

    made = place(problem, effort=EFFORT)

    assert made.replicas == (2, 2)
    assert made.added == (0,)
