"""Rejection of new pods where the rules of their variant do not allow them, by the checker alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from support.planning_builders import node, variant

from controller.planning.checker import check
from controller.planning.cluster import NodePool, Taint
from controller.planning.decision import NodePlacement
from controller.planning.inputs import Settings
from controller.planning.plan import plan
from controller.planning.pod_rules import MostPerNode, PodRules, Spread
from controller.planning.snapshot import Replica, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

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
