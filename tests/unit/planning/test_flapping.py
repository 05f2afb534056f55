"""The budget of reversals: cost alone does not reverse a variant too often; needs take precedence."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice, pairwise
from random import Random
from typing import TYPE_CHECKING

import pytest
from support.planning_builders import load, node, variant

from controller.planning.decision import BoundBy
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Replica, Snapshot
from controller.planning.state import Course, PlanningState

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from controller.planning.decision import Plan

STEP_SECONDS = 60.0
START = 1_000_000.0
HOUR = Settings(flap_reversals=4, flap_window_seconds=3600.0)


def _run(demands: Iterable[int], settings: Settings, *, others: int = 0) -> list[Plan]:
    """Return one plan per step, each applied before the next; another model of priority 1 has a load."""
    state, running, made = PlanningState(), {"a": 1, "b": 0}, []
    for step, rate in enumerate(demands):
        world = _world(running, {"llama": rate, "other": others}, START + STEP_SECONDS * step)
        found, state = plan(world, state, settings)
        running = {decision.name: decision.replicas for decision in found.decisions}
        made.append(found)
    return made


def _world(running: dict[str, int], demands: dict[str, int], moment: float) -> Snapshot:
    def one(name: str, model: str, priority: int) -> object:
        pods = tuple(Replica(name=f"{name}-{i}", node="n", ready=True) for i in range(running[name]))
        return replace(
            variant(name, model_id=model, priority=priority, serves=10_000),
            current_replicas=running[name],
            replicas=pods,
            may_scale_to_zero=model == "other",
        )

    return Snapshot(
        nodes=(node("n", 8),),
        variants=(one("a", "llama", 100), one("b", "other", 1)),  # type: ignore[arg-type]
        loads=tuple(load(rate, model) for model, rate in demands.items()),
        taken_seconds=moment,
    )


def _replicas(plans: Sequence[Plan], name: str = "a") -> list[int]:
    return [next(d.replicas for d in made.decisions if d.name == name) for made in plans]


def _turns(counts: Sequence[int]) -> list[int]:
    """Return the steps at which the direction changes."""
    moves = [
        (step, after - before) for step, (before, after) in enumerate(pairwise(counts)) if after != before
    ]
    return [step for (_, last), (step, change) in pairwise(moves) if last * change < 0]


@pytest.mark.parametrize("reversals", [2, 3, 4, 7])
@pytest.mark.parametrize("period", [1, 3])
def test_an_oscillating_demand_causes_at_most_the_allowed_reversals(reversals: int, period: int) -> None:
    """This holds in every window and for any period; at the limit the larger number of replicas is kept."""
    settings = replace(HOUR, flap_reversals=reversals, flap_window_seconds=20 * STEP_SECONDS)
    swing = islice(cycle([45_000] * period + [5_000] * period), 60)

    turns = _turns([1, *_replicas(_run(swing, settings))])

    assert turns
    assert all(sum(0 <= turn - first < 20 for turn in turns) <= reversals for first in turns)


def test_random_demands_cause_at_most_the_allowed_reversals() -> None:
    """The limit does not depend on a regular period."""
    settings = replace(HOUR, flap_reversals=3, flap_window_seconds=15 * STEP_SECONDS)
    for seed in range(8):
        random = Random(seed)
        demands = [random.choice((2_000, 15_000, 45_000)) for _ in range(40)]
        turns = _turns([1, *_replicas(_run(demands, settings))])
        assert all(sum(0 <= turn - first < 15 for turn in turns) <= 3 for first in turns), seed


def test_without_a_budget_replicas_follow_every_oscillation() -> None:
    """This is the reference for the other tests."""
    swing = islice(cycle((45_000, 5_000)), 20)

    assert len(_turns([1, *_replicas(_run(swing, replace(HOUR, flap_reversals=0)))])) > 10


def test_the_message_names_the_budget_only_while_it_binds() -> None:
    """When demand needs the replicas again, demand is the bound."""
    plans = _run([*islice(cycle((45_000, 5_000)), 8), 45_000], HOUR)
    held, needed = plans[7].decisions[0], plans[8].decisions[0]

    assert held.bound_by is BoundBy.FLAPPING
    assert held.message.startswith("a is kept at 6 replicas: changed direction 4 times in the last hour, ")
    assert (needed.replicas, needed.bound_by) == (6, BoundBy.DEMAND)


def test_after_the_window_the_direction_may_change_again() -> None:
    """No variant is kept forever."""
    settings = replace(HOUR, flap_window_seconds=10 * STEP_SECONDS)
    counts = _replicas(_run([*islice(cycle((45_000, 5_000)), 8), *[5_000] * 12], settings))

    assert (counts[7], counts[-1]) == (6, 1)


def test_a_higher_priority_preempts_replicas_kept_by_the_budget() -> None:
    """A variant that the budget keeps does not block others."""
    swing = list(islice(cycle((45_000, 5_000)), 8))
    state, running = PlanningState(), {"a": 1, "b": 0}
    for step, rate in enumerate(swing):
        world = _world(running, {"llama": rate, "other": 0}, START + STEP_SECONDS * step)
        made, state = plan(world, state, HOUR)
        running = {decision.name: decision.replicas for decision in made.decisions}
    made, _ = plan(_world(running, {"llama": 5_000, "other": 55_000}, START + 600), state, HOUR)

    assert running["a"] == 6
    assert _replicas([made]) == [1]
    assert _replicas([made], "b") == [7]


def test_reversals_are_recorded_in_the_state() -> None:
    """The state is returned with every plan, so nothing is lost if a child process ends."""
    state = PlanningState(courses=(Course(namespace="llm", name="a", replicas=5, direction=1),))
    world = _world({"a": 5, "b": 0}, {"llama": 5_000, "other": 0}, START)

    _, after = plan(world, state, Settings())

    found = {course.name: course for course in after.courses}
    assert (found["a"].direction, found["a"].reversed_seconds) == (-1, (START,))


def test_reversals_are_not_counted_without_a_timestamp() -> None:
    """A snapshot from a file may have none."""
    state = PlanningState(courses=(Course(namespace="llm", name="a", replicas=5, direction=1),))
    world = _world({"a": 5, "b": 0}, {"llama": 5_000, "other": 0}, 0.0)

    assert plan(world, state, HOUR)[1].courses == state.courses
