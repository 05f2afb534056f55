"""Removal order of pods, and the deletion-cost annotations that make ReplicaSets follow it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from random import Random

import pytest
from support.manifests import node

from apiserver.schema.json import Json
from controller.observe.inventory import inventory
from controller.observe.pods import DELETION_COST, removal_ranks
from controller.observe.removal_order import OURS, DeletionMark, leaving_order, marks
from controller.planning.cluster import Node

MARKED = {DELETION_COST: "-1", OURS: "-1"}


def pod(
    name: str,
    node: str,
    *,
    size: int = 1,
    ready: bool = True,
    annotations: dict[str, str] | None = None,
    template: str = "abc",
) -> Json:
    """Return a pod of Deployment `web`; without a node it is pending."""
    container = {"resources": {"requests": {"nvidia.com/gpu": size}}}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "resourceVersion": "7",
            "labels": {"pod-template-hash": template},
            "annotations": annotations or {},
        },
        "spec": {"containers": [container]} | ({"nodeName": node} if node else {}),
        "status": {
            "phase": "Running" if node else "Pending",
            "conditions": [{"type": "Ready", "status": "True"}] if ready and node else [],
        },
    }


NODES = [node("a"), node("b"), node("c", unschedulable=True), node("d", accelerators=4)]


def held(pods: Sequence[Json]) -> Mapping[str, Node]:
    """Return the nodes with some pods."""
    return {item.name: item for item in inventory(NODES, pods, frozenset())}


ORDERS: dict[str, tuple[list[Json], list[Json], list[str]]] = {
    "a pod whose removal empties a node precedes one that leaves it half full": (
        [pod("x", "a", size=4), pod("y", "b", size=4)],
        [pod("batch", "a", size=4)],
        ["y", "x"],
    ),
    "of nodes that become empty the one with the fewest pods comes first": (
        [pod("a1", "a"), pod("a2", "a"), pod("b1", "b")],
        [],
        ["b1", "a1", "a2"],
    ),
    "if no node becomes empty the one with the most free accelerators comes first": (
        [pod("x", "a", size=2), pod("y", "b", size=2)],
        [pod("batch-1", "a", size=5), pod("batch-2", "b", size=2)],
        ["y", "x"],
    ),
    "emptying a larger node precedes emptying a smaller one": (
        [pod("x", "d"), pod("y", "b")],
        [],
        ["y", "x"],
    ),
    "pods on a cordoned node come first": (
        [pod("x", "b"), pod("y", "c"), pod("z", "c")],
        [],
        ["y", "z", "x"],
    ),
    "unbound and unready pods come before all others": (
        [pod("x", "c"), pod("slow", "a", ready=False), pod("pending", "")],
        [],
        ["pending", "slow", "x"],
    ),
    "a deletion cost set by a user above 0 keeps a pod": (
        [pod("dear", "c", annotations={DELETION_COST: "5"}), pod("x", "a")],
        [],
        ["x", "dear"],
    ),
    "a deletion cost set by a user below 0 removes a pod first": (
        [pod("x", "c"), pod("cheap", "a", annotations={DELETION_COST: "-5"})],
        [],
        ["cheap", "x"],
    ),
    "a deletion cost set by Stowplan does not change the order": (
        [pod("x", "c"), pod("marked", "a", annotations=MARKED)],
        [],
        ["x", "marked"],
    ),
    "a deletion cost of Stowplan that a user has changed counts as the user's": (
        [pod("x", "c"), pod("taken", "a", annotations=MARKED | {DELETION_COST: "-9"})],
        [],
        ["taken", "x"],
    ),
    "an invalid deletion cost is ignored": (
        [pod("x", "b"), pod("odd", "c", annotations={DELETION_COST: "much"})],
        [],
        ["x", "odd"],
    ),
    "during a rollout the order is left to the ReplicaSets": (
        [pod("x", "b", template="old"), pod("y", "c", template="new")],
        [],
        ["x", "y"],
    ),
}


@pytest.mark.parametrize("sentence", ORDERS)
def test_pods_whose_removal_frees_most_come_first(sentence: str) -> None:
    """The order does not depend on that of the input."""
    pods, others, expected = ORDERS[sentence]
    nodes = held([*pods, *others])

    assert [item["metadata"]["name"] for item in leaving_order(pods, nodes)] == expected
    assert [item["metadata"]["name"] for item in leaving_order(pods[::-1], nodes)] == expected


MARKS: dict[str, tuple[list[Json], int, Mapping[str, Mapping[str, str | None]]]] = {
    "a pod that a ReplicaSet might not choose is marked": ([pod("x", "a"), pod("y", "b")], 1, {"x": MARKED}),
    "a pod that is removed first anyway is not marked": ([pod("x", ""), pod("y", "b")], 1, {}),
    "pods of one target on the same node are not marked": ([pod("x", "a"), pod("y", "a")], 1, {}),
    "no pod is marked if all are removed": ([pod("x", "a"), pod("y", "b")], 0, {}),
    "an existing mark is not written again": ([pod("x", "a", annotations=MARKED), pod("y", "b")], 1, {}),
    "all marks are removed if no pod is removed": (
        [pod("x", "a", annotations=MARKED), pod("y", "b")],
        2,
        {"x": {DELETION_COST: None, OURS: None}},
    ),
    "the mark moves from a pod to keep to a pod to remove": (
        [pod("x", "a"), pod("y", "b", annotations=MARKED)],
        1,
        {"x": MARKED, "y": {DELETION_COST: None, OURS: None}},
    ),
    "a user's deletion cost that replaced a mark is kept": (
        [pod("x", "a", annotations=MARKED | {DELETION_COST: "3"})],
        1,
        {"x": {OURS: None}},
    ),
    "a user's deletion cost is never overwritten": (
        [pod("x", "a", annotations={DELETION_COST: "0"}), pod("y", "b", annotations={DELETION_COST: "0"})],
        1,
        {},
    ),
    "during a rollout no pod is marked": (
        [pod("x", "a", template="old"), pod("y", "b", template="new", annotations=MARKED)],
        1,
        {"y": {DELETION_COST: None, OURS: None}},
    ),
}


@pytest.mark.parametrize("sentence", MARKS)
def test_only_the_necessary_annotations_are_changed(sentence: str) -> None:
    """Expected are the changed annotations by pod name."""
    pods, keep, expected = MARKS[sentence]

    found = marks(pods, keep)

    assert {mark.name: dict(mark.annotations) for mark in found} == expected
    assert all((mark.namespace, mark.resource_version) == ("ns", "7") for mark in found)


@pytest.mark.parametrize("seed", range(300))
def test_the_planned_nodes_are_freed_however_a_replica_set_breaks_ties(seed: int) -> None:
    """Exempt are cases in which users set the same deletion cost on a pod to keep and on one to remove."""
    random = Random(seed)
    pods = [_drawn(f"p{number}", random) for number in range(random.randint(1, 9))]
    keep = random.randint(0, len(pods))
    ordered = leaving_order(pods, held(pods))
    going = ordered[: len(pods) - keep]
    edge = {_person(item) for item in going} & {_person(item) for item in ordered[len(going) :]} - {None}

    after = _written(pods, marks(ordered, keep))
    ranks = removal_ranks(after)
    random.shuffle(after)
    deleted = sorted(after, key=lambda item: ranks[item["metadata"]["name"]])[: len(going)]

    assert edge or _nodes(deleted) == _nodes(going)
    assert {n: _person(item) for n, item in _named(after).items()} == {
        n: _person(item) for n, item in _named(pods).items()
    }


def _drawn(name: str, random: Random) -> Json:
    annotations: dict[str, str] = random.choice(
        [{}, {}, {}, MARKED, {DELETION_COST: random.choice(("-2", "0", "1", "2"))}]
    )
    return pod(name, random.choice("abcd"), ready=random.random() > 0.2, annotations=annotations)


def _written(pods: Sequence[Json], found: Sequence[DeletionMark]) -> list[Json]:
    changes = {mark.name: mark.annotations for mark in found}
    after = []
    for item in pods:
        merged = item["metadata"]["annotations"] | dict(changes.get(item["metadata"]["name"], {}))
        kept = {name: value for name, value in merged.items() if value is not None}
        after.append(item | {"metadata": item["metadata"] | {"annotations": kept}})
    return after


def _person(item: Json) -> str | None:
    """Return the deletion cost that a user has set, or None."""
    present = item["metadata"]["annotations"]
    return None if present == MARKED else present.get(DELETION_COST)


def _nodes(pods: Sequence[Json]) -> Counter[str]:
    return Counter(item["spec"].get("nodeName", "") for item in pods)


def _named(pods: Sequence[Json]) -> dict[str, Json]:
    return {item["metadata"]["name"]: item for item in pods}
