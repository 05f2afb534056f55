"""What the textbook model takes its answers for is what they are, however early it is cut off."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from campaign import often
from ortools.sat.python import cp_model
from planning_builders import LIMITS
from small_problems import choosy_problem, rank, small_problem

from controller.planning import lexicographic
from controller.planning.problem import Bin, CoverRow, GrowthTerms, PlacementProblem, Stage, VariantTerms
from controller.planning.textbook import place

if TYPE_CHECKING:
    from collections.abc import Callable

EFFORTS = (1e-5, 1e-4, 1e-3)
SEEDS = range(5160, 5160 + often(25))


GROWING_SEEDS = (179, 396, *range(400, 400 + often(20)))


def _problems() -> list[PlacementProblem]:
    return [make(Random(seed)) for seed in SEEDS for make in (small_problem, choosy_problem)]


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
            made = place(problem, limits=replace(LIMITS, deterministic_seconds=effort))
            added = made.added or (0,) * len(problem.growth)
            assert [proof.value for proof in made.proofs] == rank(problem, made.replicas, added)
            assert all(proof.bound <= proof.value for proof in made.proofs)


def test_what_a_step_begins_with_is_possible(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Every variable has a value that the model admits: half an answer would be no beginning."""
    begun: list[list[int]] = []
    minimize: Callable[..., object] = lexicographic._minimize

    def watch(
        model: cp_model.CpModel, objective: lexicographic.Objective, *, hint: tuple[int, ...], **named: object
    ) -> object:
        fixed = cp_model.CpSolver()
        fixed.parameters.num_workers = 1
        fixed.parameters.fix_variables_to_their_hinted_value = True
        lexicographic._hint(
            model, [(model.get_int_var_from_proto_index(i), value) for i, value in enumerate(hint)]
        )
        begun.append(list(hint))
        assert fixed.solve(model) in (cp_model.OPTIMAL, cp_model.FEASIBLE)
        return minimize(model, objective, hint=hint, **named)

    monkeypatch.setattr(lexicographic, "_minimize", watch)
    for problem in (*_problems(), *_growing()):
        place(problem, limits=LIMITS)
    assert len(begun) > len(SEEDS)


def test_no_node_is_added_that_the_first_answer_needs_only_in_its_own_order() -> None:
    """One by one both small ones go to one node, and a large one to a new node that costs nothing."""
    terms = VariantTerms(
        name="small",
        accelerators=1,
        cost=1,
        start_price=0,
        stop_price=0,
        current=0,
        bound=(),
        ready=0,
        lower=0,
        upper=2,
    )
    problem = PlacementProblem(
        variants=(terms, replace(terms, name="large", accelerators=2)),
        free=(3, 3),
        bins=(Bin(nodes=(0, 1), sizes=(1, 2), variants=(0, 1)),),
        rows=tuple(
            CoverRow(name=f"m{v}", stage=Stage.DEMAND, priority=v, model=v, requirement=2, terms=((v, 1),))
            for v in (0, 1)
        ),
        growth=(GrowthTerms(name="pool", bin=0, accelerators=4, price=0, limit=1),),
    )

    made = place(problem, limits=LIMITS)

    assert made.replicas == (2, 2)
    assert made.added == (0,)
