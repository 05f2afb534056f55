"""Who gives way to higher priorities, and how many at once."""

from __future__ import annotations

from dataclasses import replace
from random import Random

import pytest
from planning_builders import LIMITS, node, sample, variant
from small_snapshots import small_snapshot

from controller.planning.checker import check
from controller.planning.columns import place
from controller.planning.decision import Plan
from controller.planning.plan import plan
from controller.planning.preemption import taken
from controller.planning.preparing import prepared
from controller.planning.settings import Settings, Strategy
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState

FULL = sample(in_use=15_000, waiting=60, avg_input_tokens=500.0)
BUSY = sample(in_use=13_000)


def _shortage(**changes: int | str) -> Snapshot:
    """Return four replicas of a batch model that are needed, and a chat model that lacks two."""
    chat = variant("chat", "n0", model_id="chat", size=8, priority=1, max_replicas=3, report=FULL)
    batch = variant("batch", "n1", "n2", "n3", "n4", model_id="batch", size=8, priority=50, report=BUSY)
    nodes = tuple(node(f"n{index}", 8) for index in range(5))
    return Snapshot(nodes=nodes, variants=(chat, replace(batch, **changes)))


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


@pytest.mark.parametrize(
    ("changes", "most", "want"),
    [
        pytest.param({}, 10**6, {"batch": 2, "chat": 3}, id="as many as are needed"),
        pytest.param({}, 1, {"batch": 3, "chat": 2}, id="one at a time"),
        pytest.param({}, 0, {"batch": 4, "chat": 1}, id="none"),
        pytest.param(
            {"disruption_budget": "pdb", "evictable_replicas": 1},
            10**6,
            {"batch": 3, "chat": 2},
            id="as many as the disruption budget of its pods allows",
        ),
    ],
)
def test_so_many_give_way(changes: dict[str, int | str], most: int, want: dict[str, int]) -> None:
    """What is needed is taken by and by, and the sentence of who waits says so."""
    world = _shortage(**changes)
    made, _ = plan(world, PlanningState(), Settings(most_preempted=most))

    assert _replicas(made) == want
    assert check(world, made) == ()
    chat = next(decision for decision in made.decisions if decision.name == "chat")
    assert ("lower priorities give way step by step" in chat.message) == (want["chat"] < 3)


def test_what_nobody_needs_is_not_counted() -> None:
    """A model that has too much gives it up at once, whatever the budget."""
    idle = variant("idle", "n0", "n1", "n2", model_id="idle", size=8, priority=50, report=sample(in_use=10))
    nodes = tuple(node(f"n{index}", 8) for index in range(3))
    made, _ = plan(Snapshot(nodes=nodes, variants=(idle,)), PlanningState(), Settings(most_preempted=0))

    assert _replicas(made) == {"idle": 1}


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_plan_takes_more_than_the_budget(most: int) -> None:
    """On snapshots with everything in them; who gave way without a budget may be another one."""
    for seed in range(60):
        world = small_snapshot(Random(seed))
        settings = Settings(most_preempted=most)
        given = prepared(world, PlanningState(), settings)
        answer = given.granted(lambda problem: place(problem, limits=LIMITS), Strategy.OPTIMAL)
        assert sum(sum(item.replicas.values()) for item in taken(answer)) <= most, seed
        if answer.is_gradual:
            freely = given.answered(place(given.problem, limits=LIMITS), Strategy.OPTIMAL)
            assert sum(sum(item.replicas.values()) for item in taken(freely)) > most, seed
