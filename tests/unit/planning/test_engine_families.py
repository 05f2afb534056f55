"""The placement engine on generated fleets: feasibility, bounds, and comparison with simple heuristics."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING

import pytest
from support.campaign import often
from support.planning_builders import EFFORT

from controller.planning import engine
from hack.fleets.catalogue import FAMILIES, Instance
from hack.fleets.rivals import HEURISTICS
from hack.fleets.score import levels
from hack.fleets.verify import wrong

if TYPE_CHECKING:
    from controller.planning.problem import PlacementProblem, Solution

MODELS = 20
SEED = 5
"""The first seed. With others, some families take seconds to prove; campaigns use those that follow."""


@cache
def placed(family: str, seed: int) -> tuple[PlacementProblem, Solution]:
    """Return a small generated fleet and its solution, cached because several tests use it."""
    problem = Instance(family=family, size=MODELS, seed=seed).problem()
    return problem, engine.place(problem, effort=EFFORT)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_small_fleet_is_solved_to_proven_optimality(family: str) -> None:
    """At each level the bound over all replica mixes equals the value."""
    for seed in range(SEED, SEED + often(1)):
        _, solution = placed(family, seed)
        assert [proof.bound for proof in solution.proofs] == [proof.value for proof in solution.proofs], seed
        assert not solution.unproven


@pytest.mark.parametrize("family", FAMILIES)
def test_no_simple_heuristic_beats_the_engine(family: str) -> None:
    """In each family the solution is feasible and, level by level, as good as that of each or better."""
    problem, solution = placed(family, SEED)
    reached = levels(problem, solution.replicas)

    assert wrong(problem, solution) == []
    assert [proof.value for proof in solution.proofs] == list(reached.values())
    assert all(proof.bound <= proof.value for proof in solution.proofs)
    for name, heuristic in HEURISTICS.items():
        theirs = levels(problem, heuristic.place(problem).replicas)
        assert list(reached.values()) <= list(theirs.values()), name


@pytest.mark.parametrize("family", FAMILIES)
def test_a_solution_without_effort_is_feasible_with_correct_values_and_bounds(family: str) -> None:
    """Without a search the solution may be far from optimal, but no bound exceeds its value."""
    problem = Instance(family=family, size=MODELS, seed=2).problem()
    solution = engine.place(problem, effort=replace(EFFORT, deterministic_seconds=1e-9))
    reached = list(levels(problem, solution.replicas).values())

    assert wrong(problem, solution) == []
    assert [proof.value for proof in solution.proofs] == reached
    assert all(proof.bound <= proof.value for proof in solution.proofs)


@pytest.mark.parametrize(
    ("family", "seed"), [("F3-skew", 3), ("F11-uneven-sizes", 2), ("F14-equal-ratios", 3)]
)
def test_a_fleet_that_can_be_served_completely_is_served(family: str, seed: int) -> None:
    """Room is so scarce that the cheapest mix of each model would leave many of them short."""
    problem = Instance(family=family, size=500, seed=seed).problem()
    *served, cost = engine.place(problem, effort=EFFORT).proofs
    assert [proof.value for proof in served] == [0] * len(served)
    assert cost.improvable < 1e-3


def test_counts_serve_demand_that_a_small_core_leaves_unmet() -> None:
    """Pods are spread over ten zones: a core of few patterns leaves a tenth of the last demand unmet."""
    problem = Instance(family="F9-zones-10", size=50, seed=5).problem()
    *_, demand, _ = engine.place(problem, effort=EFFORT).proofs

    assert demand.value < 0.06 * demand.total


def test_counts_close_the_gap_that_a_core_leaves() -> None:
    """The fleet has too many models to settle all levels by counts."""
    problem = Instance(family="F4-tight", size=50, seed=0).problem()
    by_cores = engine.place(problem, effort=EFFORT, closes_gaps=False)
    proven = engine.place(problem, effort=EFFORT)

    assert by_cores.unproven
    assert not proven.unproven
    values = [[proof.value for proof in solution.proofs] for solution in (proven, by_cores)]
    assert values[0] <= values[1]
