"""A search that begins where another one ended: on a problem that differs, or a strange one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from planning_builders import EFFORT
from small_problems import (
    added_nodes,
    best_rank,
    check_claims,
    constrained_problem,
    is_possible,
    rank,
    small_problem,
)
from support.campaign import TIMES, often

from controller.planning.engine import Engine, place
from controller.planning.inputs import PlanningInputs, from_json, to_json
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
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
    """Return the problem with other requirements, and perhaps a node more or less room on one."""
    rows = tuple(replace(row, requirement=random.randint(1, 2 * row.requirement)) for row in problem.rows)
    free = tuple(max(0, room + random.choice((0, 0, 1, -1))) for room in problem.free)
    return replace(problem, rows=rows, free=free)


def _again(problem: PlacementProblem, like: Solution) -> Solution:
    """Place beginning with the prices of an answer to another problem."""
    return place(problem, effort=EFFORT, known=like.prices)


def _check_best(problem: PlacementProblem, solution: Solution, told: object) -> None:
    """Demand an answer that is possible, the best there is, and worth what it says."""
    added, best = added_nodes(problem, solution), best_rank(problem)
    assert is_possible(problem, solution.replicas, added), told
    assert rank(problem, solution.replicas, added) == best, told
    assert [proof.value for proof in solution.proofs] == best, told
    assert all(proof.bound <= proof.value for proof in solution.proofs), told


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_what_has_changed_is_solved_as_well_as_from_the_start(make: Make) -> None:
    """Known prices say where to begin, and nothing about what is best."""
    known = 0
    for seed in SEEDS:
        before = make(Random(seed))
        like = place(before, effort=EFFORT)
        known += like.prices is not None
        problem = _busier(before, Random(seed))
        _check_best(problem, _again(problem, like), seed)
    assert known > len(SEEDS) / 8


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_change_where_mixes_are_generated_keeps_its_bounds(make: Make) -> None:
    """What is granted is possible and counted as it is, and no bound is above what is possible."""
    for seed in SEEDS:
        before = make(Random(seed))
        problem = _busier(before, Random(seed))
        known = Engine(before, most_of_model=0).place(EFFORT).prices
        check_claims(problem, Engine(problem, most_of_model=0).place(EFFORT, known=known), seed)


def test_prices_of_a_strange_problem_do_no_harm() -> None:
    """Rows that were not known are free, levels that were not searched are searched."""
    for seed in SEEDS[: often(30)]:
        strange = place(small_problem(Random(seed + 1)), effort=EFFORT)
        if strange.prices is None:
            continue
        problem = small_problem(Random(seed))
        _check_best(problem, Engine(problem).place(EFFORT, known=strange.prices), seed)


def test_the_same_beginning_gives_the_same_answer() -> None:
    """Bit by bit, prices for the next search included."""
    for seed in SEEDS[: often(15)]:
        before = small_problem(Random(seed))
        problem, like = _busier(before, Random(seed)), place(before, effort=EFFORT)
        assert _again(problem, like) == _again(problem, like), seed


@pytest.mark.parametrize(("models", "seed"), [*([(20, 3)] if TIMES > 1 else []), (20, 2), (16, 3), (12, 5)])
def test_remembering_makes_no_plan_worse(models: int, seed: int) -> None:
    """Neither where nothing changes, nor where a little does: cycle by cycle beside a plan from the start."""
    snapshot = world("plan-scarce", models, seed=seed)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    for cycle in range(1 + often(1)):
        snapshot = carried_out(snapshot, made)
        if cycle:
            snapshot = changed(snapshot, share=0.05, seed=cycle)
        afresh, _ = plan(snapshot, replace(state, prices=None), UNHURRIED)
        made, state = plan(snapshot, state, UNHURRIED)
        _check_no_worse(made, afresh)


def test_a_remembered_gap_shrinks_with_that_of_the_solution() -> None:
    """A gap that is too large would keep larger cores from being solved for good."""
    snapshot = world("plan-scarce", 60, seed=2)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    assert state.prices is not None
    remembered = {one.level: one.gap for one in state.prices.levels}
    assert 0.0 < remembered["demand of priority 4"] < 1.0
    too_large = replace(state.prices, levels=tuple(replace(one, gap=100.0) for one in state.prices.levels))
    _, after = plan(carried_out(snapshot, made), replace(state, prices=too_large), UNHURRIED)
    assert after.prices is not None
    assert {one.level: one.gap for one in after.prices.levels}["demand of priority 4"] < 1.0


def test_a_search_that_was_cut_short_spoils_no_later_one() -> None:
    """What it could not prove is not taken for what cannot be proven."""
    snapshot = world("plan-scarce", 60, seed=3)
    hurried = replace(UNHURRIED, deterministic_seconds=1e-4)
    made, state = plan(snapshot, PlanningState(), hurried)
    assert state.prices is not None
    snapshot = carried_out(snapshot, made)
    afresh, _ = plan(snapshot, replace(state, prices=None), UNHURRIED)
    again, _ = plan(snapshot, state, UNHURRIED)
    _check_no_worse(again, afresh)


def _check_no_worse(made: Plan, afresh: Plan) -> None:
    """Demand that the first level that differs is at most one per cent above the other plan's."""
    for level, other in zip(made.solver.levels, afresh.solver.levels, strict=True):
        assert level.value <= 1.01 * other.value
        if level.value != other.value:
            break


def test_a_plan_with_its_memory_can_be_saved_and_repeated() -> None:
    """What a search remembers is part of what the next one is asked with."""
    snapshot = world("plan-scarce", 20, seed=1)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    assert state.prices is not None
    later = changed(carried_out(snapshot, made), share=0.05, seed=1)
    asked = PlanningInputs(snapshot=later, state=state, settings=UNHURRIED)
    read = from_json(to_json(asked))
    assert read == asked
    assert plan(read.snapshot, read.state, read.settings) == plan(later, state, UNHURRIED)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_world_in_scarcity_has_a_plan(seed: int) -> None:
    """Also where what is better at one level would give way at a level that was settled before."""
    made, _ = plan(world("plan-scarce", 20, seed=seed), PlanningState(), UNHURRIED)
    assert not made.solver.message
