"""The placement engine on generated fleets: possible, bounded, and never behind a simple rule."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from planning_builders import EFFORT
from support.campaign import often

from controller.planning import engine
from hack.fleets.catalogue import FAMILIES, Instance
from hack.fleets.rivals import RULES
from hack.fleets.score import levels
from hack.fleets.verify import wrong

if TYPE_CHECKING:
    from controller.planning.problem import PlacementProblem, Solution

MODELS = 20


@cache
def placed(family: str, seed: int) -> tuple[PlacementProblem, Solution]:
    """Return a small fleet and the answer to it, which several tests look at."""
    problem = Instance(family=family, size=MODELS, seed=seed).scenario().problem
    return problem, engine.place(problem, effort=EFFORT)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_fleet_is_proven_over_every_mix(family: str) -> None:
    """Nothing could be better at any level, whichever replicas there were."""
    for seed in range(1, 1 + often(1)):
        _, solution = placed(family, seed)
        assert [proof.bound for proof in solution.proofs] == [proof.value for proof in solution.proofs], seed
        assert not solution.unproven


@pytest.mark.parametrize("family", FAMILIES)
def test_no_simple_rule_is_ahead_of_it(family: str) -> None:
    """On every family the answer is possible and, level by level, at least as good as each strategy's."""
    problem, solution = placed(family, 1)
    reached = levels(problem, solution.replicas)

    assert wrong(problem, solution) == []
    assert [proof.value for proof in solution.proofs] == list(reached.values())
    assert all(proof.bound <= proof.value for proof in solution.proofs)
    for name, rule in RULES.items():
        theirs = levels(problem, rule.place(problem).replicas)
        assert list(reached.values()) <= list(theirs.values()), name


@pytest.mark.parametrize("family", FAMILIES)
def test_without_any_effort_the_answer_is_possible_and_worth_what_it_says(family: str) -> None:
    """Nothing is searched: what there is at once is far from the best, and no bound says otherwise."""
    problem = Instance(family=family, size=MODELS, seed=2).scenario().problem
    solution = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9))
    reached = list(levels(problem, solution.replicas).values())

    assert wrong(problem, solution) == []
    assert [proof.value for proof in solution.proofs] == reached
    assert all(proof.bound <= proof.value for proof in solution.proofs)


@pytest.mark.parametrize(
    ("family", "seed"), [("F3-skew", 3), ("F11-uneven-sizes", 2), ("F14-equal-ratios", 3)]
)
def test_a_fleet_that_can_be_served_wholly_is(family: str, seed: int) -> None:
    """There is hardly more room than is asked for: what is cheapest for each would leave many short."""
    problem = Instance(family=family, size=500, seed=seed).scenario().problem
    *served, cost = engine.place(problem, effort=EFFORT).proofs
    assert [proof.value for proof in served] == [0] * len(served)
    assert cost.improvable < 1e-3


def test_a_small_core_that_leaves_much_unproven_is_not_the_last() -> None:
    """Pods are spread over ten zones: a core of few patterns leaves a tenth of the last demand unmet."""
    problem = Instance(family="F9-zones-10", size=50, seed=5).scenario().problem
    *_, demand, _ = engine.place(problem, effort=EFFORT).proofs

    assert demand.value < 0.06 * demand.total
