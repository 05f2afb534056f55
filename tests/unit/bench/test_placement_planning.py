"""Benchmarks of repeated complete plans, and of placement followed by evictions."""

from __future__ import annotations

from dataclasses import replace

from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState
from hack.bench.placement.joint import COLUMNS, joint_goals, measured
from hack.bench.placement.planning import (
    CHANGE,
    FIRST,
    cycles,
    planned,
    planning_goals,
    planning_table,
)
from hack.bench.placement.watching import Step, watched
from hack.bench.table import tabulated
from hack.fleets.worlds import world

SMALL = 20
QUICK = Settings(relief_solves=0)


def rates_of(found: Snapshot) -> dict[str, float]:
    """Return the requests per second of each model."""
    return {load.model_id: load.requests_per_second or 0.0 for load in found.loads}


def test_every_plan_starts_from_the_state_of_the_previous_one() -> None:
    """The decided replicas are running by then, and a few loads, different ones each time, have changed."""
    first, second, third = cycles(world("plan-plenty", SMALL, seed=0), QUICK, changes=2, seed=0)

    assert first.state == PlanningState()
    assert second.state is first.next_state
    assert third.state is second.next_state
    counts = [decision.replicas for decision in first.made.decisions]
    assert [v.current_replicas for v in sorted(second.found.variants, key=lambda v: v.key)] == counts
    moved = [
        {model for model, rate in rates_of(one.found).items() if now[model] != rate}
        for one, now in ((first, rates_of(second.found)), (second, rates_of(third.found)))
    ]
    assert [len(models) for models in moved] == [1, 1]
    assert moved[0] != moved[1]


def test_steps_are_timed_within_the_plan() -> None:
    """Their sum is 80 to 100 % of the plan's time; a plan outside of the measurement is not timed."""
    (cycle,) = cycles(world("plan-plenty", SMALL, seed=0), QUICK, changes=0, seed=0)
    with watched() as watch:
        pass
    plan(cycle.found, PlanningState(), QUICK)

    assert set(cycle.steps) == set(Step)
    assert 0.8 * cycle.cpu_seconds < sum(cycle.steps.values()) <= cycle.cpu_seconds
    assert not watch.seconds


def test_a_plan_is_measured_by_step() -> None:
    """Both plans are feasible; the goal is the time of placement after a few loads changed."""
    found = list(planned("plan-plenty", SMALL, seed=0, seconds=20.0, changes=1))
    lines = planning_table(found)
    slow = [
        replace(found[1], size=500, steps=found[1].steps | {Step.PLACE: seconds})
        for seconds in (0.2, 9.0, 0.1)
    ]
    scarce = replace(slow[0], family="plan-scarce", faults=("too much",))

    assert [one.cycle for one in found] == [FIRST, CHANGE]
    assert all(one.faults == () and one.steps["place"] > 0 for one in found)
    assert [line.split()[-1] for line in lines[1:]] == ["yes"] * 2
    assert [goal.line() for goal in planning_goals([*slow, scarce], slowness=4.0)] == [
        "goal: T5_placing_after_a_change_in_plan-plenty_of_500 50.0 ms, wanted <= 30: missed",
        "goal: T5_placing_after_a_change_in_plan-scarce_of_500 50.0 ms, wanted <= 30: missed",
        "goal: impossible_plans 1.00 plans, wanted <= 0: missed",
    ]


def test_models_with_unmet_demand_get_capacity_by_evictions() -> None:
    """Both steps are timed, and goals are at the pace of the reference machine."""
    found = measured(100, 200, seconds=20.0)
    goals = {goal.name: goal for goal in joint_goals([replace(found, place_seconds=7.0)], slowness=4.0)}

    assert 0 <= found.placed <= found.wanted
    assert found.is_proven
    assert min(found.place_seconds, found.move_seconds) > 0
    assert tabulated(COLUMNS, [found])[1].split()[0] == "F4-fragmented"
    assert goals["T3_cpu_of_placing_then_moving_in_20000_nodes"].is_met
