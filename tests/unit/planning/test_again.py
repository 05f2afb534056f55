"""A search that begins where another one ended: on a problem that differs, or a strange one."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

import pytest
from planning_builders import LIMITS
from small_problems import best_rank, is_possible, rank, small_problem
from support.campaign import often

from controller.planning import columns
from controller.planning.columns import cohorts, nearness
from controller.planning.inputs import PlanningInputs, from_json, to_json
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.state import PlanningState
from hack.bench.placement.worlds import carried_out, changed, world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.decision import Plan
    from controller.planning.problem import PlacementProblem
    from controller.planning.snapshot import Snapshot

pytestmark = pytest.mark.usefixtures("search_alone")

SEEDS = range(often(60))
BEGAN = 1_700_000_000.0
UNHURRIED = replace(Settings(), deterministic_seconds=0.2, wall_seconds=600, relief_solves=1)


def _busier(problem: PlacementProblem, random: Random) -> PlacementProblem:
    """Return the problem with other requirements, and perhaps a node more or less room on one."""
    rows = tuple(replace(row, requirement=random.randint(1, 2 * row.requirement)) for row in problem.rows)
    free = tuple(max(0, room + random.choice((0, 0, 1, -1))) for room in problem.free)
    return replace(problem, rows=rows, free=free)


@pytest.mark.parametrize("block", range(3))
def test_what_has_changed_is_solved_as_well_as_from_the_start(block: int) -> None:
    """Known prices say where to begin, and nothing about what is best."""
    known = 0
    for seed in SEEDS[block::3]:
        before = small_problem(Random(seed))
        problem = _busier(before, Random(seed))
        like = columns.place(before, limits=LIMITS)
        known += like.prices is not None
        solution = columns.place_again(problem, limits=LIMITS, like=like)
        added = solution.added or (0,) * len(problem.growth)
        assert is_possible(problem, solution.replicas, added), seed
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed
        assert all(proof.bound <= proof.value for proof in solution.proofs), seed
    assert known > len(SEEDS) / 8


def test_prices_of_a_strange_problem_do_no_harm() -> None:
    """Rows that were not known are free, levels that were not searched are searched."""
    for seed in SEEDS[: often(30)]:
        strange = columns.place(small_problem(Random(seed + 1)), limits=LIMITS)
        if strange.prices is None:
            continue
        problem = small_problem(Random(seed))
        solution = columns.ColumnModel(problem).place(LIMITS, known=strange.prices)
        added = solution.added or (0,) * len(problem.growth)
        assert rank(problem, solution.replicas, added) == best_rank(problem), seed


def test_a_change_with_generated_columns_keeps_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where not every mix is a column, what is said of columns and of all mixes still holds."""
    monkeypatch.setattr(cohorts, "ENUMERABLE_MIXES", 0)
    for seed in SEEDS[: often(30)]:
        before = small_problem(Random(seed))
        problem = _busier(before, Random(seed))
        known = columns.place(before, limits=LIMITS).prices
        solution = columns.ColumnModel(problem, certifies=True).place(LIMITS, known=known)
        added = solution.added or (0,) * len(problem.growth)
        best = best_rank(problem)
        assert is_possible(problem, solution.replicas, added), seed
        for proof, value, least in zip(
            solution.proofs, rank(problem, solution.replicas, added), best, strict=True
        ):
            assert proof.value == value, seed
            assert proof.bound_of_all is None or proof.bound_of_all <= least, seed
            if value != least:
                break


def test_a_brief_search_says_nothing_of_itself_that_is_not_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may stay short of the best, but what it grants is possible, counted as it is, and bounded."""
    monkeypatch.setattr(cohorts, "ENUMERABLE_MIXES", 0)
    monkeypatch.setattr(nearness, "PROVEN_MODELS", 0)
    searched = 0
    for seed in SEEDS:
        before = small_problem(Random(seed))
        problem = _busier(before, Random(seed))
        like = columns.place(before, limits=LIMITS)
        solution = columns.place_again(problem, limits=LIMITS, like=like)
        searched += like.prices is not None and solution.prices is not None
        added = solution.added or (0,) * len(problem.growth)
        reached, best = rank(problem, solution.replicas, added), best_rank(problem)
        assert is_possible(problem, solution.replicas, added), seed
        assert [proof.value for proof in solution.proofs] == reached, seed
        assert all(proof.bound <= proof.value for proof in solution.proofs), seed
        assert reached >= best, seed
    assert searched > len(SEEDS) / 8


def test_a_rough_search_finds_what_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """It solves one core of each level: what it grants is possible, and mostly the best."""
    monkeypatch.setattr(cohorts, "ENUMERABLE_MIXES", 0)
    best = 0
    for seed in SEEDS:
        before = small_problem(Random(seed))
        problem = _busier(before, Random(seed))
        like = columns.place(before, limits=LIMITS)
        solution = columns.place_again(problem, limits=LIMITS, like=like, is_rough=True)
        added = solution.added or (0,) * len(problem.growth)
        reached = rank(problem, solution.replicas, added)
        assert is_possible(problem, solution.replicas, added), seed
        assert [proof.value for proof in solution.proofs] == reached, seed
        assert reached >= best_rank(problem), seed
        best += reached == best_rank(problem)
    assert best > 0.9 * len(SEEDS)


@pytest.mark.parametrize(("models", "seed"), [(20, 3), (12, 5)])
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


def _chain(models: int, *, cycles: int, settings: Settings) -> Iterator[tuple[Snapshot, PlanningState, Plan]]:
    """Yield plans with what they were made of; little changes in the quarter of a minute between them."""
    snapshot, state = replace(world("plan-scarce", models, seed=2), taken_seconds=BEGAN), PlanningState()
    for cycle in range(cycles):
        made, later = plan(snapshot, state, settings)
        yield snapshot, state, made
        moved = changed(carried_out(snapshot, made), share=0.02, seed=cycle)
        snapshot, state = replace(moved, taken_seconds=snapshot.taken_seconds + 15), later


def test_a_brief_search_comes_about_as_near_as_a_thorough_one() -> None:
    """Beside a plan of the same state that takes its time: no level is given up for speed."""
    chained = list(_chain(130, cycles=2 + often(1), settings=UNHURRIED))
    assert [state.thorough_seconds for _, state, _ in chained[:3]] == [0.0, BEGAN, BEGAN]
    for snapshot, state, made in chained[1:]:
        thorough, _ = plan(snapshot, replace(state, thorough_seconds=0.0), UNHURRIED)
        for level, other in zip(made.solver.levels, thorough.solver.levels, strict=True):
            assert level.value <= 1.05 * other.value + 1
            if level.value > other.value:
                break


def test_a_thorough_search_is_made_again_before_long() -> None:
    """Whatever brief ones miss is missed until then; without a clock no search is brief."""
    (snapshot, *_), (later, known, _) = _chain(110, cycles=2, settings=UNHURRIED)
    assert known.thorough_seconds == snapshot.taken_seconds
    cases = {
        "soon after": (later, UNHURRIED, BEGAN),
        "just before": (replace(later, taken_seconds=BEGAN + 299), UNHURRIED, BEGAN),
        "when the time is over": (replace(later, taken_seconds=BEGAN + 300), UNHURRIED, BEGAN + 300),
        "when the clock was set back": (replace(later, taken_seconds=BEGAN - 1), UNHURRIED, BEGAN - 1),
        "when nobody knows the time": (replace(later, taken_seconds=0.0), UNHURRIED, 0.0),
        "when all are to be": (later, replace(UNHURRIED, thorough_seconds=0.0), later.taken_seconds),
    }
    for sentence, (found, settings, thorough_seconds) in cases.items():
        made, after = plan(found, known, settings)
        assert after.thorough_seconds == thorough_seconds, sentence
        if thorough_seconds != BEGAN:
            afresh, _ = plan(found, replace(known, thorough_seconds=0.0), settings)
            assert made == afresh, sentence


def test_no_search_is_brief_because_a_hurried_one_was_bad() -> None:
    """How near one with less effort came says nothing of how near one can come."""
    snapshot = replace(world("plan-scarce", 110, seed=3), taken_seconds=BEGAN)
    hurried = replace(UNHURRIED, deterministic_seconds=1e-3)
    made, state = plan(snapshot, PlanningState(), hurried)
    assert state.prices is not None
    assert state.thorough_seconds == BEGAN
    later = replace(carried_out(snapshot, made), taken_seconds=BEGAN + 15)
    brief, _ = plan(later, state, UNHURRIED)
    thorough, _ = plan(later, replace(state, thorough_seconds=0.0), UNHURRIED)
    assert brief == thorough


def _check_no_worse(made: Plan, afresh: Plan) -> None:
    """Demand that the first level that differs is at most one per cent above the other plan's."""
    for level, other in zip(made.solver.levels, afresh.solver.levels, strict=True):
        assert level.value <= 1.01 * other.value
        if level.value != other.value:
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
    """Also where what is better at one level would give way at a level that was settled before."""
    made, _ = plan(world("plan-scarce", 20, seed=seed), PlanningState(), UNHURRIED)
    assert not made.solver.message
