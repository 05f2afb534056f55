"""Preemption for higher priorities: which replicas are removed, and how many per plan."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from support.campaign import often
from support.planning_builders import EFFORT, load, node, variant
from support.small_snapshots import small_snapshot

from controller.planning.checker import check
from controller.planning.cluster import Budget
from controller.planning.decision import Plan
from controller.planning.engine import place
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.preparing import preemptions, prepare
from controller.planning.snapshot import Snapshot
from controller.planning.solved_problem import SolvedProblem

SERVES = 12_800


def _shortage(**changes: Any) -> Snapshot:
    """Return a batch model with four replicas that it needs, and a chat model that lacks two."""
    chat = variant("chat", "n0", model_id="chat", size=8, priority=1, max_replicas=3, serves=SERVES)
    batch = variant("batch", "n1", "n2", "n3", "n4", model_id="batch", size=8, priority=50, serves=SERVES)
    nodes = tuple(node(f"n{index}", 8) for index in range(5))
    return Snapshot(
        nodes=nodes,
        variants=(chat, replace(batch, **changes)),
        loads=(load(45_000, "chat"), load(52_000, "batch")),
    )


def _budget(evictable: int) -> dict[str, Any]:
    """Return the members of a variant whose disruption budget allows some evictions."""
    return {"disruption_budget": "pdb", "evictable_replicas": evictable}


def _replicas(made: Plan) -> dict[str, int]:
    return {decision.name: decision.replicas for decision in made.decisions}


@pytest.mark.parametrize(
    ("evictable", "want"),
    [
        pytest.param(None, {"batch": 2, "chat": 3}, id="without a budget, as many as are needed"),
        pytest.param(1, {"batch": 3, "chat": 2}, id="one at a time"),
        pytest.param(0, {"batch": 4, "chat": 1}, id="none at all"),
    ],
)
def test_a_disruption_budget_limits_the_preempted_replicas_of_a_plan(
    evictable: int | None, want: dict[str, int]
) -> None:
    """Later plans preempt the rest, and the message of the waiting model states this."""
    world = _shortage(**({} if evictable is None else _budget(evictable)))
    made = plan(world, Settings())

    assert _replicas(made) == want
    assert check(world, made) == ()
    chat = next(decision for decision in made.decisions if decision.name == "chat")
    assert ("replicas of lower priorities are" in chat.message) == (want["chat"] < 3)
    assert ("removed over several plans" in chat.message) == (1 < want["chat"] < 3)


def test_surplus_replicas_do_not_count_as_preempted() -> None:
    """A model with too many replicas gives them up at once, even if no preemption is allowed."""
    idle = variant(
        "idle", "n0", "n1", "n2", model_id="idle", size=8, priority=50, serves=SERVES, **_budget(0)
    )
    nodes = tuple(node(f"n{index}", 8) for index in range(3))
    world = Snapshot(nodes=nodes, variants=(idle,), loads=(load(30, "idle"),))
    made = plan(world, Settings())

    assert _replicas(made) == {"idle": 1}


@pytest.mark.parametrize("most", [0, 1, 3])
def test_no_plan_preempts_more_than_disruption_budgets_allow(most: int) -> None:
    """On random snapshots; a budget takes effect only if more would be preempted without it."""
    for seed in range(often(12)):
        world = small_snapshot(Random(seed))
        world = replace(
            world, variants=tuple(replace(item, evictable_replicas=most) for item in world.variants)
        )
        given = prepare(world, Settings())
        answer = given.grant(lambda problem: place(problem, effort=EFFORT))
        limited = bool(world.quotas or world.budgets or any(m.max_replicas is not None for m in world.models))
        assert limited or not _beyond(answer, most), seed
        for row in given.problem.limits:
            untouched = sum(amount * given.problem.variants[v].lower for v, amount in row.terms)
            used = sum(amount * answer.granted.replicas[v] for v, amount in row.terms)
            assert used <= max(row.limit, untouched), seed
        if answer.gives_way:
            assert _beyond(given.solved_by(place(given.problem, effort=EFFORT)), most), seed


def _beyond(solved: SolvedProblem, most: int) -> bool:
    """Tell whether more replicas of a variant are preempted than unready ones and `most`."""
    unready = [sum(bool(pod.nodes) and not pod.ready for pod in item.replicas) for item in solved.variants]
    return any(count > unready[v] + most for v, count in preemptions(solved))


def test_successive_plans_preempt_until_a_whole_node_is_free() -> None:
    """Each plan makes progress though it frees no node, and no other model gets what is freed."""
    chat = variant("chat", model_id="chat", size=8, priority=1, max_replicas=1, min_replicas=1)
    pods = ("n0", "n0", "n0", "n0")
    low = variant(
        "low", *pods, model_id="low", size=2, priority=50, max_replicas=4, serves=SERVES, **_budget(1)
    )
    batch = variant("batch", model_id="batch", size=2, priority=90, min_replicas=2)
    seen = []
    for _ in range(4):
        world = Snapshot(nodes=(node("n0", 8),), variants=(chat, low, batch), loads=(load(52_000, "low"),))
        made = _replicas(plan(world, Settings()))
        seen.append((made["chat"], made["low"], made["batch"]))
        low = replace(
            low, current_replicas=made["low"], replicas=low.replicas[len(low.replicas) - made["low"] :]
        )
    assert seen == [(0, 3, 0), (0, 2, 0), (0, 1, 0), (1, 0, 0)]


def test_variants_under_one_disruption_budget_share_it() -> None:
    """One replica may be preempted, of either variant."""
    budget: dict[str, Any] = {"disruption_budget": "p", "evictable_replicas": 1}
    chat = variant("chat", model_id="chat", size=8, priority=1, min_replicas=2, max_replicas=2)
    low = [
        variant(f"low{k}", f"n{k}", model_id=f"low{k}", size=8, priority=50, serves=SERVES, **budget)
        for k in range(2)
    ]
    nodes = tuple(node(f"n{index}", 8) for index in range(2))
    loads = tuple(load(13_000, item.model_id) for item in low)
    made = plan(Snapshot(nodes=nodes, variants=(chat, *low), loads=loads), Settings())

    assert sorted(_replicas(made).values()) == [0, 1, 1]


def test_replicas_that_are_not_ready_are_not_protected_by_a_disruption_budget() -> None:
    """A disruption budget limits evictions of ready pods only."""
    batch = variant(
        "batch", "n1", "n2", model_id="batch", size=8, priority=50, serves=SERVES, evictable_replicas=0
    )
    starting = replace(batch.replicas[0], ready=False, report_age_seconds=None)
    batch = replace(batch, replicas=(starting, batch.replicas[1]))
    chat = variant("chat", model_id="chat", size=8, priority=1, min_replicas=2, max_replicas=2)
    nodes = tuple(node(f"n{index}", 8) for index in (1, 2))
    world = Snapshot(nodes=nodes, variants=(chat, batch), loads=(load(13_000, "batch"),))
    made = plan(world, Settings())

    assert _replicas(made) == {"batch": 1, "chat": 1}


def test_a_disruption_budget_does_not_override_a_strict_cost_budget() -> None:
    """Otherwise a user could exceed the cost budget by creating a disruption budget."""
    protected = variant("v", "n", "n", "n", model_id="v", size=1, serves=SERVES, evictable_replicas=0)
    world = Snapshot(
        nodes=(node("n", 8),),
        variants=(protected,),
        loads=(load(39_000, "v"),),
        budgets=(Budget(name="b", cost_per_hour=Decimal(10), is_strict=True),),
    )
    made = plan(world, Settings())

    assert _replicas(made) == {"v": 1}
