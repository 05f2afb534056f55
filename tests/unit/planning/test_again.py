"""Warm starts: searches that start from the dual prices of a solution to another problem."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.campaign import TIMES, often
from support.planning_builders import EFFORT
from support.small_problems import (
    added_nodes,
    best_rank,
    check_claims,
    constrained_problem,
    is_possible,
    rank,
    small_problem,
)

from controller.planning.engine import Engine, place
from controller.planning.inputs import PlanningInputs, PlanningState, Settings, from_json, to_json
from controller.planning.plan import plan
from hack.fleets.worlds import carried_out, changed, world

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.planning.decision import Plan
    from controller.planning.problem import PlacementProblem, Solution

    Make = Callable[[Random], PlacementProblem]

MAKERS: dict[str, Make] = {"small": small_problem, "constrained": constrained_problem}
SEEDS = range(often(60))
UNHURRIED = replace(Settings(), deterministic_seconds=2.0, wall_seconds=600, relief_solves=0)


def _busier(problem: PlacementProblem, random: Random) -> PlacementProblem:
    """Return the problem with other requirements, and perhaps one accelerator more or less on some nodes."""
    rows = tuple(replace(row, requirement=random.randint(1, 2 * row.requirement)) for row in problem.rows)
    free = tuple(max(0, room + random.choice((0, 0, 1, -1))) for room in problem.free)
    return replace(problem, rows=rows, free=free)


def _again(problem: PlacementProblem, like: Solution) -> Solution:
    """Return the solution of a search that starts from the prices of another problem's solution."""
    return place(problem, effort=EFFORT, known=like.prices)


def _check_best(problem: PlacementProblem, solution: Solution, told: object) -> None:
    """Assert that a solution is feasible and optimal, and that its values are correct."""
    added, best = added_nodes(problem, solution), best_rank(problem)
    assert is_possible(problem, solution.replicas, added), told
    assert rank(problem, solution.replicas, added) == best, told
    assert [proof.value for proof in solution.proofs] == best, told
    assert all(proof.bound <= proof.value for proof in solution.proofs), told


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_changed_problem_is_solved_to_optimality_from_a_warm_start(make: Make) -> None:
    """Known prices determine where the search starts, not what is optimal."""
    known = 0
    for seed in SEEDS:
        before = make(Random(seed))
        like = place(before, effort=EFFORT)
        known += like.prices is not None
        problem = _busier(before, Random(seed))
        _check_best(problem, _again(problem, like), seed)
    assert known > len(SEEDS) / 8


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_bounds_hold_after_a_warm_start_with_generated_patterns(make: Make) -> None:
    """Solutions are feasible with correct values, and no bound exceeds the optimum."""
    for seed in SEEDS:
        before = make(Random(seed))
        problem = _busier(before, Random(seed))
        known = Engine(before, most_of_model=0).place(EFFORT).prices
        check_claims(problem, Engine(problem, most_of_model=0).place(EFFORT, known=known), seed)


def test_prices_of_an_unrelated_problem_do_no_harm() -> None:
    """Rows without known prices start at zero, and levels that were not searched are searched."""
    for seed in SEEDS[: often(30)]:
        strange = place(small_problem(Random(seed + 1)), effort=EFFORT)
        if strange.prices is None:
            continue
        problem = small_problem(Random(seed))
        _check_best(problem, Engine(problem).place(EFFORT, known=strange.prices), seed)


def test_equal_warm_starts_give_equal_solutions() -> None:
    """The prices for the next search are equal, too."""
    for seed in SEEDS[: often(15)]:
        before = small_problem(Random(seed))
        problem, like = _busier(before, Random(seed)), place(before, effort=EFFORT)
        assert _again(problem, like) == _again(problem, like), seed


@pytest.mark.parametrize(("models", "seed"), [*([(20, 3)] if TIMES > 1 else []), (20, 2), (16, 3), (12, 5)])
def test_warm_starts_make_no_plan_worse(models: int, seed: int) -> None:
    """In each cycle, with and without a small change, the plan is compared with one from a cold start."""
    snapshot = world("plan-scarce", models, seed=seed)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    for cycle in range(1 + often(1)):
        snapshot = carried_out(snapshot, made)
        if cycle:
            snapshot = changed(snapshot, share=0.05, seed=cycle)
        afresh, _ = plan(snapshot, replace(state, prices=None), UNHURRIED)
        made, state = plan(snapshot, state, UNHURRIED)
        _check_no_worse(made, afresh)


def test_an_interrupted_search_does_not_worsen_a_later_one() -> None:
    """What it could not prove is not taken for something that cannot be proven."""
    snapshot = world("plan-scarce", 60, seed=3)
    hurried = replace(UNHURRIED, deterministic_seconds=1e-4)
    made, state = plan(snapshot, PlanningState(), hurried)
    assert state.prices is not None
    snapshot = carried_out(snapshot, made)
    afresh, _ = plan(snapshot, replace(state, prices=None), UNHURRIED)
    again, _ = plan(snapshot, state, UNHURRIED)
    _check_no_worse(again, afresh)


def _check_no_worse(made: Plan, afresh: Plan) -> None:
    """Assert that the first level that differs is at most 1 % above that of the other plan."""
    for level, other in zip(made.solver.levels, afresh.solver.levels, strict=True):
        assert level.value <= 1.01 * other.value
        if level.value != other.value:
            break


def test_a_plan_with_stored_prices_can_be_saved_and_replayed() -> None:
    """Stored prices are part of the inputs of the next plan."""
    snapshot = world("plan-scarce", 20, seed=1)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    assert state.prices is not None
    later = changed(carried_out(snapshot, made), share=0.05, seed=1)
    asked = PlanningInputs(snapshot=later, state=state, settings=UNHURRIED)
    read = from_json(to_json(asked))
    assert read == asked
    assert plan(read.snapshot, read.state, read.settings) == plan(later, state, UNHURRIED)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_cluster_with_scarce_accelerators_gets_a_plan(seed: int) -> None:
    """This includes problems where improving a level would worsen one that is already settled."""
    made, _ = plan(world("plan-scarce", 20, seed=seed), PlanningState(), UNHURRIED)
    assert not made.solver.message
