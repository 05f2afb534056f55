"""Rejection of harmful plans by the checker: each case damages an acceptable plan."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.planning_builders import load, node, variant

from controller.planning.checker import check
from controller.planning.checker.places import fit_on_equal_nodes
from controller.planning.cluster import NodePool, Taint, Toleration
from controller.planning.decision import NodePlacement, Reason
from controller.planning.inputs import Settings
from controller.planning.load import Signal
from controller.planning.plan import plan
from controller.planning.pod_rules import MostPerNode, PodRules, Spread
from controller.planning.snapshot import Replica, Snapshot

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

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


NODES = tuple(
    node(name, 8, labels=frozenset({("zone", name[0])} if name[0] != "x" else ()))
    for name in ("a1", "a2", "b1", "b2", "x1")
)
"""Nodes are named after their zone; x1 is in none."""

APART = PodRules(most_per_node=MostPerNode(pods=2))
EVEN = PodRules(spread=Spread(topology_key="zone"))
LOOSE = PodRules(spread=Spread(topology_key="zone", max_skew=2))
FEW = PodRules(spread=Spread(topology_key="zone", max_skew=2, counts_from_zero=True))


def rejections(world: Snapshot, places: str, **rules: Any) -> tuple[str, ...]:
    """Return what is wrong with new pods on some nodes if the only variant has rules.

    The plan is that without rules, in which there is room for everything, with other places.
    """
    (plain,) = world.variants
    made = plan(world, Settings())
    at = Counter(places.split())
    assert sum(place.pods for place in made.placements) == at.total()
    placed = replace(
        made,
        placements=tuple(
            NodePlacement(namespace=plain.namespace, name=plain.name, node=host, pods=pods)
            for host, pods in at.items()
        ),
    )
    return check(replace(world, variants=(replace(plain, **rules),)), placed)


@pytest.mark.parametrize(
    ("rules", "bound", "places", "want"),
    [
        pytest.param(APART, ["a1"], "a1 a2 a2", (), id="at most two are on each node"),
        pytest.param(
            APART, ["a1"], "a1 a1", ("v: 3 pods on node a1, at most 2 may be there",), id="three on one"
        ),
        pytest.param(APART, ["a1"] * 3, "a2", (), id="bound pods exceed the limit where none is new"),
        pytest.param(EVEN, [], "a1 a2 b1", (), id="one zone has one more"),
        pytest.param(
            EVEN, [], "a1 a2", ("v: zone=a is 2 pods ahead, at most 1 are allowed",), id="two in one zone"
        ),
        pytest.param(EVEN, ["a1"], "b1 b2", (), id="the bound pod counts"),
        pytest.param(
            EVEN,
            ["a1"],
            "a2",
            ("v: zone=a is 2 pods ahead, at most 1 are allowed",),
            id="the zone of the bound pod gets another one",
        ),
        pytest.param(EVEN, ["a1"] * 3, "b1", (), id="the skew was exceeded before, and decreases"),
        pytest.param(LOOSE, [], "a1 a2", (), id="the skew allows two"),
        pytest.param(
            LOOSE,
            ["b1"],
            "a1 a1 a2 a2",
            ("v: zone=a is 3 pods ahead, at most 2 are allowed",),
            id="a larger skew is exceeded",
        ),
        pytest.param(FEW, [], "a1 a2 b1 b2", (), id="two are in each zone"),
        pytest.param(
            FEW,
            ["a1", "b1"],
            "a1 a2 b1 b2",
            tuple(f"v: zone={zone} is 3 pods ahead, at most 2 are allowed" for zone in "ab"),
            id="three in each zone, counted from zero",
        ),
    ],
)
def test_new_pods_keep_the_rules_of_their_variant(
    rules: PodRules, bound: list[str], places: str, want: Sequence[str]
) -> None:
    """Bound pods may break a rule, as long as no new pod makes it worse."""
    world = Snapshot(
        nodes=NODES, variants=(variant("v", *bound, min_replicas=len(bound) + len(places.split())),)
    )

    assert rejections(world, places, rules=rules) == want


def test_new_pods_are_not_spread_to_a_node_without_the_label() -> None:
    """It belongs to no zone."""
    world = Snapshot(nodes=NODES, variants=(variant("v", min_replicas=1),))

    assert rejections(world, "x1", rules=EVEN) == (
        "v: may not go to node x1",
        "v: only 0 places for 1 pods",
        "v: zone= is 0 pods ahead, at most 1 are allowed",
    )


def test_a_zone_whose_nodes_are_tainted_counts_and_one_of_another_type_does_not() -> None:
    """As in kube-scheduler, nodes count that match the selector and the affinity of the pods."""
    tainted = node("c1", 8, taints=frozenset({Taint(key="gpu")}), labels=frozenset({("zone", "c")}))
    other = node("d1", 8, accelerator="A100", labels=frozenset({("zone", "d")}))
    asked = variant("v", min_replicas=4)
    too_many = tuple(f"v: zone={zone} is 2 pods ahead, at most 1 are allowed" for zone in "ab")

    assert rejections(Snapshot(nodes=(*NODES, other), variants=(asked,)), "a1 a2 b1 b2", rules=EVEN) == ()
    world = Snapshot(nodes=(*NODES, tainted), variants=(asked,))
    assert rejections(world, "a1 a2 b1 b2", rules=EVEN) == too_many


POOL = NodePool(
    name="more",
    accelerator="H100",
    accelerators_per_node=8,
    price_per_node=Decimal(1),
    nodes_addable=2,
    labels=frozenset({("zone", "c")}),
)


@pytest.mark.parametrize("rules", [APART, EVEN])
def test_new_pods_keep_their_rules_on_nodes_to_be_added(rules: PodRules) -> None:
    """Zones of such nodes count, since there are no others, and each of the nodes counts."""
    asked = variant("v", min_replicas=4, rules=rules)
    world = Snapshot(nodes=(), variants=(asked,), pools=(POOL,))
    made = plan(world, Settings())

    assert [decision.replicas for decision in made.decisions] == [4]
    assert check(world, made) == ()


def test_more_pods_than_allowed_on_nodes_to_be_added_are_rejected() -> None:
    """Without the rule, one node is enough for all four pods."""
    asked = variant("v", min_replicas=4)
    made = plan(Snapshot(nodes=(), variants=(asked,), pools=(POOL,)), Settings())
    ruled = Snapshot(nodes=(), variants=(replace(asked, rules=APART),), pools=(POOL,))

    assert [request.nodes for request in made.requests] == [1]
    (problem,) = check(ruled, made)
    assert problem.startswith("v: 4 pods on node ")
    assert problem.endswith(", at most 2 may be there")


@pytest.mark.parametrize(
    ("places", "want"),
    [
        pytest.param("a1 a2 b1 b2", (), id="both are whole"),
        pytest.param("a1 a1 a2 a2", (), id="both are in one zone"),
        pytest.param(
            "x1 x1 a1 a1", ("v: 2 pods in zone=, not a multiple of pods_per_replica",), id="one is in no zone"
        ),
        pytest.param(
            "a1 b1 b1 b2",
            tuple(
                f"v: {pods} pods in zone={zone}, not a multiple of pods_per_replica"
                for zone, pods in (("a", 1), ("b", 3))
            ),
            id="one is divided",
        ),
    ],
)
def test_the_pods_of_new_replicas_are_in_one_zone_each(places: str, want: Sequence[str]) -> None:
    """Each of two replicas has two pods."""
    asked = variant("v", size=2, min_replicas=2, pods_per_replica=2)

    assert rejections(Snapshot(nodes=NODES, variants=(asked,)), places, together_in="zone") == want


@pytest.mark.parametrize(
    ("place", "want"),
    [
        pytest.param("a2", (), id="where the other pod is"),
        pytest.param("b1", ("v: 1 pods in zone=b, not a multiple of pods_per_replica",), id="elsewhere"),
    ],
)
def test_a_missing_pod_is_in_the_zone_of_its_replica(place: str, want: Sequence[str]) -> None:
    """The replica is bound in part."""
    one = Replica(name="v-0", node="a1")
    asked = variant("v", size=2, min_replicas=1, pods_per_replica=2)
    asked = replace(asked, replicas=(one,), current_replicas=1)

    assert rejections(Snapshot(nodes=NODES, variants=(asked,)), place, together_in="zone") == want
