"""Replicas of which only some pods are bound: planning keeps room for the others."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from support.campaign import often
from support.planning_builders import load, node, variant
from support.small_snapshots import constrained_snapshot

from controller.planning.checker import check
from controller.planning.incomplete import complete
from controller.planning.inputs import PlanningInputs, Settings, from_json, to_json
from controller.planning.plan import plan
from controller.planning.pod_rules import MostPerNode, PodRules, Spread
from controller.planning.snapshot import Replica, Snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.decision import Plan
    from controller.planning.snapshot import Variant

SETTINGS = Settings(deterministic_seconds=2.0, wall_seconds=60.0)
ZONES = {"a1": "a", "b1": "b", "b2": "b", "c1": "c", "a2": "a"}
NODES = tuple(node(name, 4, labels=frozenset({("zone", zone)})) for name, zone in ZONES.items())


def gang(*hosts: Sequence[str], **changes: Any) -> Variant:
    """Return a variant whose replicas have two pods of four accelerators each in one zone."""
    replicas = tuple(
        Replica(name=f"gang-{i}", node=nodes[0], further_nodes=tuple(nodes[1:]))
        for i, nodes in enumerate(hosts)
    )
    made = variant("gang", size=8, pods_per_replica=2, together_in="zone", serves=1000, model_id="gang")
    return replace(made, replicas=replicas, current_replicas=len(hosts), **changes)


def made(*variants: Variant, rates: Sequence[float], nodes: Sequence[str] = tuple(ZONES)) -> Plan:
    """Return the plan for variants whose models have some load."""
    world = Snapshot(
        nodes=tuple(item for item in NODES if item.name in nodes),
        variants=variants,
        loads=tuple(load(rate, item.model_id) for item, rate in zip(variants, rates, strict=True)),
    )
    found = plan(world, SETTINGS)
    assert found.solver.is_answered, found.solver.message
    return found


def places(found: Plan) -> Counter[tuple[str, str]]:
    """Return the pods that a plan places, by variant and node."""
    return Counter({(place.name, place.node): place.pods for place in found.placements})


def single(**changes: Any) -> Variant:
    """Return a variant that could use every node."""
    return replace(variant("single", size=4, serves=1000, model_id="single"), **changes)


def test_the_missing_pod_of_a_group_gets_a_place_in_its_zone() -> None:
    """Another model with unlimited load gets all nodes but that one, and a second group none."""
    found = made(gang(["a1"]), single(), rates=(800, 10_000))

    assert {item.name: item.replicas for item in found.decisions} == {"gang": 1, "single": 3}
    assert places(found) == {("gang", "a2"): 1, ("single", "b1"): 1, ("single", "b2"): 1, ("single", "c1"): 1}


def test_a_missing_pod_and_a_new_group_get_places() -> None:
    """The new group is in the other zone with two nodes."""
    found = made(gang(["a1"]), rates=(1600,))

    assert places(found) == {("gang", "a2"): 1, ("gang", "b1"): 1, ("gang", "b2"): 1}


def test_an_incomplete_group_that_is_removed_gets_no_place() -> None:
    """The load needs only one of two groups, and the first one is removed."""
    found = made(gang(["a1"], ["b1"]), rates=(300,))

    assert [item.replicas for item in found.decisions] == [1]
    assert places(found) == {("gang", "b2"): 1}


@pytest.mark.parametrize(
    ("group", "nodes"),
    [
        pytest.param(gang(["a1"]), ("a1", "b1"), id="its zone has no room"),
        pytest.param(gang(["gone"]), ("a1", "a2"), id="the zone of the bound pod is unknown"),
        pytest.param(
            gang(["a1"], together_in="", rules=PodRules(spread=Spread(topology_key="zone"))),
            ("a1", "b1"),
            id="it is spread",
        ),
        pytest.param(
            gang(["a1"], together_in="", rules=PodRules(most_per_node=MostPerNode(pods=1))),
            ("a1",),
            id="no other node exists",
        ),
    ],
)
def test_a_group_stays_if_its_missing_pod_can_have_no_place(group: Variant, nodes: Sequence[str]) -> None:
    """Nothing is placed, and the plan is valid."""
    found = made(group, rates=(800,), nodes=nodes)

    assert found.decisions[0].replicas == 1
    assert places(found) == {}


@pytest.mark.parametrize("together_in", ["", "zone"])
def test_room_for_many_groups_is_found_in_a_limited_time(together_in: str) -> None:
    """All groups of a large cluster start at once; usually this takes a tenth of a second."""
    nodes = [node(f"n{i}", 8, labels=frozenset({("zone", str(i // 10))})) for i in range(5000)]
    replicas = tuple(Replica(name=f"gang-{i}", node=f"n{10 * i}") for i in range(200))
    made = variant("gang", size=8, pods_per_replica=8, together_in=together_in)
    world = Snapshot(
        nodes=tuple(nodes),
        variants=(replace(made, replicas=replicas, current_replicas=200),),
        loads=(load(1.0),),
    )
    began = time.process_time()
    found = complete(world)

    assert time.process_time() - began < 3.0
    assert sum(map(len, found.added[made.key].values())) == 200 * 7


def test_plans_with_incomplete_groups_follow_all_rules_and_stay_the_same_once_these_are_complete() -> None:
    """In random clusters, binding the missing pods to their places changes no other place."""
    settings, seen = replace(SETTINGS, relief_solves=0), 0
    for seed in range(often(100)):
        random = Random(seed)
        whole = constrained_snapshot(random)
        world = replace(whole, variants=tuple(_with_missing_pods(random, item) for item in whole.variants))
        first = plan(world, settings)
        assert first.solver.is_answered, (seed, first.solver.message)
        assert check(world, first) == (), seed
        assert from_json(to_json(PlanningInputs(snapshot=world))).snapshot == world
        then = complete(world)
        if not then.added:
            continue
        second = plan(then.snapshot, settings)
        assert first.decisions == second.decisions, seed
        filled = Counter(
            (key[1], node) for key, own in then.added.items() for n in own.values() for node in n
        )
        assert places(second) <= places(first) <= places(second) + filled, seed
        seen += places(first) != places(second)
    assert seen > 5


def _with_missing_pods(random: Random, item: Variant) -> Variant:
    replicas = tuple(
        replace(replica, further_nodes=()) if random.random() < 0.5 else replica for replica in item.replicas
    )
    return replace(item, replicas=replicas)
