"""What the compact formulation takes its answers for is what they are, however early it is cut off."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from planning_builders import EFFORT
from small_problems import constrained_problem, rank, small_problem
from support.campaign import often
from support.compact import lexicographic, place
from support.plain_problems import demand, terms

from controller.planning.problem import Bin, GrowthTerms, PlacementProblem

if TYPE_CHECKING:
    from collections.abc import Callable

    from ortools.sat.python import cp_model

EFFORTS = (1e-3, 3e-3, 1e-2)
SEEDS = range(5160, 5160 + often(25))
GROWING_SEEDS = (179, 396, *range(400, 400 + often(20)))


def _problems() -> list[PlacementProblem]:
    return [make(Random(seed)) for seed in SEEDS for make in (small_problem, constrained_problem)]


def _growing() -> list[PlacementProblem]:
    """Return problems in which room is freed beside nodes that could be added."""
    made = [small_problem(Random(seed)) for seed in GROWING_SEEDS]
    return [
        replace(problem, growth=tuple(replace(growth, limit=3) for growth in problem.growth))
        for problem in made
    ]


def test_values_are_those_of_the_replicas() -> None:
    """Level by level, as written down once more."""
    for problem in _problems():
        for effort in EFFORTS:
            made = place(problem, effort=replace(EFFORT, deterministic_seconds=effort))
            added = made.added or (0,) * len(problem.growth)
            assert [proof.value for proof in made.proofs] == rank(problem, made.replicas, added)
            assert all(proof.bound <= proof.value for proof in made.proofs)


def test_what_a_step_begins_with_is_possible(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every variable has a value that the model admits: half an answer would be no beginning."""
    begun: list[tuple[int, ...]] = []
    minimize: Callable[..., object] = lexicographic._minimize

    def watch(model: cp_model.CpModel, *given: object, hint: tuple[int, ...], **named: object) -> object:
        solver = lexicographic._solver(EFFORT, share=1.0)
        solver.parameters.fix_variables_to_their_hinted_value = True
        lexicographic._hint(model, hint)
        begun.append(lexicographic._solve(model, solver))
        assert begun[-1] == hint
        return minimize(model, *given, hint=hint, **named)

    monkeypatch.setattr(lexicographic, "_minimize", watch)
    for problem in (*_problems(), *_growing()):
        place(problem, effort=EFFORT)
    assert len(begun) > len(SEEDS)


def test_no_node_is_added_that_the_first_answer_needs_only_in_its_own_order() -> None:
    """One by one both small ones go to one node, and a large one to a new node that costs nothing."""
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
