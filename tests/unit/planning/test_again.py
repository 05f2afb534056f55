"""A search that begins where another one ended: on a problem that differs, or a strange one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from planning_builders import LIMITS
from small_problems import best_rank, is_possible, rank, small_problem

from controller.planning import columns
from controller.planning.inputs import PlanningInputs, from_json, to_json
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from hack.bench.placement.worlds import carried_out, changed, world

if TYPE_CHECKING:
    from controller.planning.problem import PlacementProblem

SEEDS = range(300)
UNHURRIED = replace(Settings(), wall_seconds=600, relief_solves=1)


def _busier(problem: PlacementProblem, random: Random) -> PlacementProblem:
    """Return the problem with other requirements, and perhaps a node more or less room on one."""
    rows = tuple(replace(row, requirement=random.randint(1, 2 * row.requirement)) for row in problem.rows)
    free = tuple(max(0, room + random.choice((0, 0, 1, -1))) for room in problem.free)
    return replace(problem, rows=rows, free=free)


@pytest.mark.parametrize("block", range(3))
def test_what_has_changed_is_solved_as_well_as_from_the_start(block: int) -> None:
    """Known prices say where to begin, and nothing about what is best."""
    for seed in SEEDS[block::3]:
        before = small_problem(Random(seed))
        problem = _busier(before, Random(seed))
        solution = columns.place_again(problem, limits=LIMITS, like=columns.place(before, limits=LIMITS))
        added = solution.added or (0,) * len(problem.growth)
        assert is_possible(problem, solution.replicas, added), seed
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed
        assert all(proof.bound <= proof.value for proof in solution.proofs), seed


def test_prices_of_a_strange_problem_do_no_harm() -> None:
    """Rows that were not known are free, levels that were not searched are searched."""
    for seed in SEEDS[:100]:
        strange = columns.place(small_problem(Random(seed + 1)), limits=LIMITS)
        problem = small_problem(Random(seed))
        model = columns.ColumnModel(problem)
        solution = model.place(LIMITS, known=strange.prices)
        added = solution.added or (0,) * len(problem.growth)
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed


def test_a_plan_of_a_little_change_is_nearly_that_from_the_start() -> None:
    """Remembered prices save most of the search, and hardly anything of the answer."""
    snapshot = world("plan-scarce", 60, seed=3)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    assert state.prices is not None
    later = changed(carried_out(snapshot, made), share=0.05, seed=1)
    again, _ = plan(later, state, UNHURRIED)
    afresh, _ = plan(later, replace(state, prices=None), UNHURRIED)
    for level, other in zip(again.solver.levels, afresh.solver.levels, strict=True):
        assert level.bound <= other.value
        if level.value != other.value:
            assert level.improvable <= 0.02
            break


def test_a_plan_with_its_memory_can_be_saved_and_repeated() -> None:
    """What a search remembers is part of what the next one is asked with."""
    snapshot = world("plan-scarce", 30, seed=1)
    made, state = plan(snapshot, PlanningState(), UNHURRIED)
    later = changed(carried_out(snapshot, made), share=0.05, seed=1)
    asked = PlanningInputs(snapshot=later, state=state, settings=UNHURRIED)
    read = from_json(to_json(asked))
    assert read == asked
    assert plan(read.snapshot, read.state, read.settings) == plan(later, state, UNHURRIED)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_small_world_in_scarcity_has_a_plan(seed: int) -> None:
    """Also where an answer near the divisible one would give way at a level that was settled before."""
    made, _ = plan(world("plan-scarce", 20, seed=seed), PlanningState(), UNHURRIED)
    assert not made.solver.message
