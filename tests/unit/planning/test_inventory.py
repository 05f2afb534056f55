"""Eligibility of nodes for variants, grouping of nodes into bins, and their order by free accelerators."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from support.campaign import often
from support.planning_builders import node, variant

from controller.planning.cluster import Node, NodePool, Taint, Toleration
from controller.planning.engine.rooms import Hosts
from controller.planning.inventory import admits, bins, with_addable_nodes
from controller.planning.problem import Bin
from controller.planning.snapshot import Variant

TAINT = Taint(key="nvidia.com/gpu", value="present")
FLEX = frozenset({("pool", "flex")})


def _tolerating(**fields: str) -> dict[str, Any]:
    return {"tolerations": frozenset({Toleration(**fields)})}


@pytest.mark.parametrize(
    ("place", "asker", "want"),
    [
        pytest.param({}, {}, True, id="same type"),
        pytest.param({"accelerator": "A100"}, {}, False, id="another type"),
        pytest.param({"accelerator": "A100"}, {"accelerator": ""}, True, id="no type stated by the variant"),
        pytest.param({"schedulable": False}, {}, False, id="cordoned"),
        pytest.param({"labels": FLEX}, {"node_selector": FLEX}, True, id="node selector matches"),
        pytest.param({}, {"node_selector": FLEX}, False, id="label of the node selector missing"),
        pytest.param(
            {"labels": frozenset({("pool", "x")})},
            {"node_selector": FLEX},
            False,
            id="another value of the label",
        ),
        pytest.param({"taints": frozenset({TAINT})}, {}, False, id="taint not tolerated"),
        pytest.param(
            {"taints": frozenset({TAINT})},
            _tolerating(key="nvidia.com/gpu", value="present"),
            True,
            id="tolerated by value",
        ),
        pytest.param(
            {"taints": frozenset({TAINT})},
            _tolerating(key="nvidia.com/gpu", operator="Exists"),
            True,
            id="tolerated by key",
        ),
        pytest.param(
            {"taints": frozenset({TAINT})}, _tolerating(operator="Exists"), True, id="everything tolerated"
        ),
        pytest.param(
            {"taints": frozenset({TAINT})},
            _tolerating(key="nvidia.com/gpu", value="absent"),
            False,
            id="another value tolerated",
        ),
        pytest.param(
            {"taints": frozenset({TAINT})},
            _tolerating(key="nvidia.com/gpu", operator="Exists", effect="NoExecute"),
            False,
            id="another effect tolerated",
        ),
        pytest.param(
            {"taints": frozenset({TAINT, Taint(key="x")})},
            _tolerating(key="nvidia.com/gpu", operator="Exists"),
            False,
            id="one of two taints tolerated",
        ),
    ],
)
def test_a_node_admits_variants_by_type_labels_and_taints(
    place: dict[str, Any], asker: dict[str, Any], *, want: bool
) -> None:
    """The rules are those of the Kubernetes scheduler."""
    assert admits(node("n", 8, **place), variant("a", **asker)) is want


@pytest.mark.parametrize(
    ("nodes", "variants", "want"),
    [
        pytest.param(
            [node("n1", 8), node("n2", 8)],
            [variant("a", size=2), variant("b", size=8)],
            [Bin(nodes=(0, 1), sizes=(2, 8), variants=(0, 1))],
            id="nodes that admit the same variants are one bin",
        ),
        pytest.param(
            [node("n1", 8), node("n2", 8, accelerator="A100"), node("n3", 8, labels=FLEX)],
            [variant("a", node_selector=FLEX), variant("b"), variant("c", accelerator="A100")],
            [
                Bin(nodes=(2,), sizes=(1,), variants=(0, 1)),
                Bin(nodes=(0,), sizes=(1,), variants=(1,)),
                Bin(nodes=(1,), sizes=(1,), variants=(2,)),
            ],
            id="nodes that admit different variants are different bins",
        ),
        pytest.param(
            [node("n1", 8)], [variant("a", size=0)], [], id="a variant without accelerators needs no bin"
        ),
        pytest.param(
            [node("n1", 8, schedulable=False)], [variant("a")], [], id="a cordoned node is in no bin"
        ),
    ],
)
def test_nodes_that_admit_the_same_variants_are_one_bin(
    nodes: list[Node], variants: list[Variant], want: list[Bin]
) -> None:
    """A bin also lists the sizes of the replicas of its variants."""
    assert list(bins(nodes, variants)[0]) == want


def test_nodes_with_the_labels_of_a_pool_count_towards_its_maximum_size() -> None:
    """Without a known maximum, the number of nodes that can be added stays as declared."""
    pool = NodePool(
        name="flex",
        accelerator="H100",
        accelerators_per_node=8,
        price_per_node=Decimal(0),
        nodes_addable=1,
        max_nodes=3,
        labels=FLEX,
    )
    nodes = [node("a", 8, labels=FLEX | {("zone", "a")}), node("b", 8, labels=FLEX), node("c", 8)]

    assert with_addable_nodes(pool, nodes).nodes_addable == 1
    assert with_addable_nodes(replace(pool, max_nodes=1), nodes).nodes_addable == 0
    assert with_addable_nodes(replace(pool, max_nodes=None, nodes_addable=7), nodes).nodes_addable == 7


def _hosts(random: Random) -> tuple[Hosts, Hosts, list[int]]:
    """Return two equal indexes of nodes in three bins, and the free accelerators of each node."""
    free = [random.randint(0, 8) for _ in range(random.randint(1, 8))]
    bins: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for number in range(len(free)):
        bins[random.randrange(3)].append(number)
    return Hosts(free, bins), Hosts(free, bins), free


def test_taking_many_at_once_equals_taking_one_by_one() -> None:
    """They get the same nodes in the same order, and as many of them."""
    for seed in range(often(300)):
        random = Random(seed)
        many, single, _ = _hosts(random)
        for _ in range(4):
            bins = random.sample([0, 1, 2], random.randint(1, 3))
            size, count = random.randint(1, 4), random.randint(1, 7)
            found = [node for node, here in many.take_many(bins, size, count) for _ in range(here)]
            one_by_one = [node for _ in range(count) for node, _ in single.take_many(bins, size, 1)]
            assert found == one_by_one, seed
            assert many.free == single.free, seed


def test_a_limit_on_the_units_of_a_node_passes_the_others_to_the_next_one() -> None:
    """Each unit goes to the fullest node with room that may still get one, as by a scan of all nodes."""
    for seed in range(often(300)):
        random = Random(seed)
        hosts, _, free = _hosts(random)
        most = [random.randint(0, 3) for _ in free]
        size, count, limits = random.randint(1, 3), random.randint(0, 9), tuple(most)
        expected = []
        for _ in range(count):
            room = [(own, node) for node, own in enumerate(free) if own >= size and most[node]]
            if room:
                _, node = min(room)
                expected.append(node)
                free[node], most[node] = free[node] - size, most[node] - 1

        found = hosts.take_many((0, 1, 2), size, count, limits.__getitem__)

        assert [node for node, here in found for _ in range(here)] == expected, seed
        assert hosts.free == free, seed


def test_released_accelerators_can_be_taken_again() -> None:
    """After any sequence of both, the fullest node with room is found, as by a scan of all nodes."""
    for seed in range(often(100)):
        random = Random(seed)
        hosts, _, free = _hosts(random)
        taken: list[tuple[int, int]] = []
        for _ in range(30):
            if taken and random.random() < 0.4:
                node, size = taken.pop(random.randrange(len(taken)))
                hosts.take_on(node, -size)
                free[node] += size
                continue
            size = random.randint(1, 4)
            expected = min(((room, n) for n, room in enumerate(free) if room >= size), default=(0, None))[1]
            assert hosts.fullest((0, 1, 2), size) == expected, seed
            if expected is not None:
                hosts.take_on(expected, size)
                taken.append((expected, size))
                free[expected] -= size
        assert hosts.free == free
