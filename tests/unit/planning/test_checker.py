"""The checker refuses every plan that would do harm: each case damages a good one."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.cluster import Taint, Toleration
from controller.planning.decision import NodePlacement, Reason
from controller.planning.load import Signal
from controller.planning.plan import plan
from controller.planning.settings import Settings
from controller.planning.snapshot import Snapshot
from controller.planning.state import PlanningState

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.planning.decision import Plan

TAINT = Taint(key="gpu")
TOLERATION = Toleration(key="gpu", operator="Exists")
WORLD = Snapshot(
    nodes=(
        node("n1", 8, taints=frozenset({TAINT})),
        node("n2", 8, used=4, taints=frozenset({TAINT}), labels=frozenset({("pool", "x")})),
        node("n3", 8, used=8),
        node("n4", 8, schedulable=False),
        node("n5", 8, accelerator="A100"),
    ),
    variants=(
        variant(
            "a",
            "n1",
            size=4,
            max_replicas=3,
            tolerations=frozenset({TOLERATION}),
            serves=12_800,
        ),
        variant("b", "n3", "n3", min_replicas=1, model_id="b", serves=12_800),
    ),
    loads=(load(25_000), load(18_000, "b")),
)
GOOD, _ = plan(WORLD, PlanningState(), Settings())


def _decide(name: str, **changes: object) -> Callable[[Plan], Plan]:
    return lambda made: replace(
        made, decisions=tuple(replace(d, **changes) if d.name == name else d for d in made.decisions)
    )


def _place(*places: tuple[str, str, int]) -> Callable[[Plan], Plan]:
    placements = tuple(
        NodePlacement(namespace="llm", name=name, node=host, pods=count) for name, host, count in places
    )
    return lambda made: replace(made, placements=placements)


def test_the_good_plan_is_good() -> None:
    """The damage below starts from a plan that is accepted: a grows to 3, one on each of two nodes."""
    assert check(WORLD, GOOD) == ()
    assert [d.replicas for d in GOOD.decisions] == [3, 2]
    assert [(p.node, p.pods) for p in GOOD.placements] == [("n1", 1), ("n2", 1)]


@pytest.mark.parametrize(
    ("damage", "want"),
    [
        pytest.param(
            lambda made: replace(made, decisions=made.decisions[:1]),
            "the plan does not have one decision for each variant, in order",
            id="a decision is missing",
        ),
        pytest.param(
            lambda made: replace(made, decisions=made.decisions[::-1]),
            "the plan does not have one decision for each variant, in order",
            id="the order is wrong",
        ),
        pytest.param(_decide("b", replicas=-1), "b: -1 replicas are less than none", id="negative"),
        pytest.param(_decide("a", replicas=4), "a: 4 replicas are more than maxReplicas (3)", id="above max"),
        pytest.param(_decide("b", replicas=0), "b: 0 replicas are less than minReplicas (1)", id="below min"),
        pytest.param(
            _decide("b", replicas=1, load=load(18_000, "b", signal=Signal.HELD)),
            "b: scaled down to 1 although its signal is Held",
            id="scaled down on old data",
        ),
        pytest.param(
            _decide("b", replicas=0),
            "b: no replica is left, though it may not scale to zero",
            id="not kept warm",
        ),
        pytest.param(
            _place(("a", "n1", 2)), "node n1: 4 accelerators too many", id="a node holds more than it has"
        ),
        pytest.param(_place(("a", "n4", 2)), "a: may not go to node n4", id="a cordoned node"),
        pytest.param(_place(("a", "n5", 2)), "a: may not go to node n5", id="another type"),
        pytest.param(_place(("a", "nowhere", 2)), "a: may not go to node nowhere", id="no such node"),
        pytest.param(
            _place(("b", "n2", 1)), "b: may not go to node n2", id="a taint that it does not tolerate"
        ),
        pytest.param(_place(("a", "n1", 1)), "a: only 1 places for 2 pods", id="a replica without a place"),
        pytest.param(_place(("a", "n1", 1), ("a", "n2", 2)), "a: 3 places for 2 pods", id="a place too many"),
    ],
)
def test_damage_is_found(damage: Callable[[Plan], Plan], want: str) -> None:
    """Each kind of harm has its sentence."""
    assert want in check(WORLD, damage(GOOD))


def test_a_minimum_may_be_missed_when_that_is_said() -> None:
    """A shortage is no error of the plan."""
    short = _decide("b", replicas=0, reason=Reason.SHORTAGE)(GOOD)

    assert check(WORLD, short) == ()


def test_a_wrong_selector_is_found() -> None:
    """Labels count."""
    picky = replace(WORLD.variants[0], node_selector=frozenset({("pool", "x")}))

    assert "a: may not go to node n1" in check(replace(WORLD, variants=(picky, WORLD.variants[1])), GOOD)
