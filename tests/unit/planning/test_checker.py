"""Rejection of harmful plans by the checker: each case damages an acceptable plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.checker.places import fit_on_equal_nodes
from controller.planning.cluster import Taint, Toleration
from controller.planning.decision import NodePlacement, Reason
from controller.planning.inputs import Settings
from controller.planning.load import Signal
from controller.planning.plan import plan
from controller.planning.snapshot import Snapshot

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
GOOD = plan(WORLD, Settings())


def _decide(name: str, **changes: Any) -> Callable[[Plan], Plan]:
    return lambda made: replace(
        made, decisions=tuple(replace(d, **changes) if d.name == name else d for d in made.decisions)
    )


def _place(*places: tuple[str, str, int]) -> Callable[[Plan], Plan]:
    placements = tuple(
        NodePlacement(namespace="llm", name=name, node=host, pods=count) for name, host, count in places
    )
    return lambda made: replace(made, placements=placements)


def test_the_undamaged_plan_is_accepted() -> None:
    """The cases start from this plan: variant a grows to 3 replicas, one new pod on each of two nodes."""
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
            id="the decisions are out of order",
        ),
        pytest.param(_decide("b", replicas=-1), "b: -1 replicas are less than none", id="negative replicas"),
        pytest.param(
            _decide("a", replicas=4), "a: 4 replicas are more than maxReplicas (3)", id="above maxReplicas"
        ),
        pytest.param(
            _decide("b", replicas=0), "b: 0 replicas are less than minReplicas (1)", id="below minReplicas"
        ),
        pytest.param(
            _decide("b", replicas=1, load=load(18_000, "b", signal=Signal.HELD)),
            "b: scaled down to 1 although its signal is Held",
            id="scaled down by a held load",
        ),
        pytest.param(
            _decide("b", replicas=0),
            "b: no replica is left, though it may not scale to zero",
            id="no replica left without scale to zero",
        ),
        pytest.param(
            _place(("a", "n1", 2)), "node n1: 4 accelerators too many", id="too many accelerators on a node"
        ),
        pytest.param(_place(("a", "n4", 2)), "a: may not go to node n4", id="a cordoned node"),
        pytest.param(_place(("a", "n5", 2)), "a: may not go to node n5", id="another accelerator type"),
        pytest.param(_place(("a", "nowhere", 2)), "a: may not go to node nowhere", id="no such node"),
        pytest.param(_place(("b", "n2", 1)), "b: may not go to node n2", id="a taint that is not tolerated"),
        pytest.param(_place(("a", "n1", 1)), "a: only 1 places for 2 pods", id="a pod without a placement"),
        pytest.param(
            _place(("a", "n1", 1), ("a", "n2", 2)), "a: 3 places for 2 pods", id="more placements than pods"
        ),
    ],
)
def test_each_kind_of_damage_is_reported(damage: Callable[[Plan], Plan], want: str) -> None:
    """Each kind of damage has its own message."""
    assert want in check(WORLD, damage(GOOD))


def test_a_missed_minimum_is_accepted_if_the_reason_is_a_shortage() -> None:
    """A shortage is not an error of the plan."""
    short = _decide("b", replicas=0, reason=Reason.SHORTAGE)(GOOD)

    assert check(WORLD, short) == ()


def test_a_placement_that_contradicts_the_node_selector_is_reported() -> None:
    """Node n1 lacks the label that the variant selects."""
    picky = replace(WORLD.variants[0], node_selector=frozenset({("pool", "x")}))

    assert "a: may not go to node n1" in check(replace(WORLD, variants=(picky, WORLD.variants[1])), GOOD)


@pytest.mark.parametrize(
    ("pods", "accelerators", "nodes", "fits"),
    [
        pytest.param({4: 1, 3: 2, 2: 3}, 8, 2, True, id="without a rest, if the largest do not come first"),
        pytest.param({8: 2, 4: 1, 1: 4}, 8, 3, True, id="sizes that divide each other"),
        pytest.param({5: 2, 3: 1}, 8, 1, False, id="more than there is"),
        pytest.param({5: 3}, 8, 2, False, id="too large for what each node has left"),
        pytest.param({0: 9}, 8, 0, True, id="pods without accelerators need no node"),
        pytest.param({9: 1}, 8, 2, False, id="a pod larger than a node"),
        pytest.param({}, 8, 0, True, id="no pods"),
    ],
)
def test_pods_fit_on_equal_nodes(pods: dict[int, int], accelerators: int, nodes: int, *, fits: bool) -> None:
    """The id of each case describes the situation."""
    assert fit_on_equal_nodes(pods, accelerators=accelerators, nodes=nodes) is fits


@given(st.lists(st.lists(st.integers(1, 16), min_size=1, max_size=3), min_size=1, max_size=3))
def test_pods_are_never_found_to_fit_on_nodes_that_are_too_few(packed: list[list[int]]) -> None:
    """Compared with all ways to place them, on as many nodes as hold them and on one less."""
    accelerators, pods = max(map(sum, packed)), Counter(size for own in packed for size in own)
    for nodes in (len(packed) - 1, len(packed)):
        found = fit_on_equal_nodes(pods, accelerators=accelerators, nodes=nodes)
        assert not found or _fit_somehow([*pods.elements()], [accelerators] * nodes)


def _fit_somehow(pods: list[int], rooms: list[int]) -> bool:
    """Try all ways to place the pods."""
    if not pods:
        return True
    size, *others = pods
    return any(
        _fit_somehow(others, [*rooms[:index], room - size, *rooms[index + 1 :]])
        for index, room in enumerate(rooms)
        if room >= size and room not in rooms[:index]
    )
