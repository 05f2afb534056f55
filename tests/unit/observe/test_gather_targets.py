"""Conversion of API objects to a snapshot: StatefulSets, LeaderWorkerSets and scheduling rules of pods."""

from __future__ import annotations

from decimal import Decimal

from support.gathering import A100, gathered, placed, pod
from support.manifests import autoscaler, deployment, variant
from support.workloads import group_pod, leader_worker_set, stateful_pod, stateful_set

from apiserver.schema.json import Json
from controller.observe.declarations import claims_of
from controller.observe.gather import (
    engine_pods,
)
from controller.planning.pod_rules import MostPerNode, Spread


def test_a_stateful_set_is_planned_with_its_own_autoscaler() -> None:
    """A Deployment of the same name is another target. The pod of the highest ordinal is removed first."""
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "chat"}
    follower = placed(autoscaler("chat", least=2, most=5))
    follower["spec"]["scaleTargetRef"] = reference
    pods = (pod("chat-x"), stateful_pod("chat", 0), stateful_pod("chat", 1))

    found = gathered(
        placed(variant("set", modelID="m", scaleTargetRef=reference)),
        others=(placed(stateful_set("chat", product=A100, accelerators=1, replicas=2)),),
        autoscalers=(follower,),
        pods=pods,
    )

    (planned,) = found.snapshot.variants
    assert (planned.current_replicas, planned.min_replicas, planned.max_replicas) == (2, 2, 5)
    assert [item.name for item in planned.replicas] == ["chat-1", "chat-0"]
    assert planned.ready_ordinals == (0, 1)
    assert found.snapshot.nodes[0].accelerators_used_by_others == 1
    assert {item.unheeded for item in found.observed.values()} == {""}


def test_ordinals_are_counted_from_the_first_one_of_a_stateful_set() -> None:
    """The first of two pods is removed last, whatever its number. Pods below it are about to be deleted."""
    reference = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "chat"}
    target = placed(stateful_set("chat", product=A100, accelerators=1, replicas=2))
    target["spec"]["ordinals"] = {"start": 1}
    pods = tuple(stateful_pod("chat", number) for number in range(3))

    found = gathered(placed(variant("set", scaleTargetRef=reference)), others=(target,), pods=pods)

    assert [item.ready_ordinals for item in found.snapshot.variants] == [(0, 1)]


def big(**changes: object) -> Json:
    """Return a LeaderWorkerSet whose groups have two pods with four accelerators each."""
    fields: Json = {"product": A100, "accelerators": 4, "size": 2} | changes
    return placed(leader_worker_set("big", **fields))


BIG = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "name": "big"}


def test_a_leader_worker_group_is_one_replica_and_only_its_leader_is_scraped() -> None:
    """Its pods hold accelerators on several nodes, and its cost is that of all of them."""
    pods = tuple(
        group_pod("big", group, worker, node=f"n{worker}", accelerators=4)
        for group in (0, 1)
        for worker in (0, 1)
    )
    claim = placed(variant("big", variantCost=None, accelerator="A100", scaleTargetRef=BIG))

    found = gathered(claim, others=(big(replicas=2, exclusive_topology="rack"),), pods=pods)

    (planned,) = found.snapshot.variants
    assert (planned.accelerators_per_replica, planned.pods_per_replica) == (8, 2)
    assert (planned.together_in, planned.may_be_moved) == ("rack", False)
    assert planned.cost_per_replica == Decimal("320.00")
    assert [(item.name, item.nodes) for item in planned.replicas] == [
        ("big-1", ("n0", "n1")),
        ("big-0", ("n0", "n1")),
    ]
    assert [item["metadata"]["name"] for item, _ in engine_pods(pods, claims_of([claim]))] == [
        "big-1",
        "big-0",
    ]


def groups_of(*pods: Json, **changes: object) -> list[tuple[str, tuple[str, ...]]]:
    """Return the names and nodes of the replicas of a LeaderWorkerSet with groups of three pods."""
    claim = placed(variant("big", scaleTargetRef=BIG))
    (planned,) = gathered(claim, others=(big(size=3, **changes),), pods=pods).snapshot.variants
    return [(item.name, item.nodes) for item in planned.replicas]


def test_a_leader_without_accelerators_takes_the_place_of_no_worker() -> None:
    """While it is the only pod of its group, no place of the group is taken yet."""
    leader = group_pod("big", 0, 0, node="cpu", accelerators=0)
    workers = (group_pod("big", 0, 1, node="n1"), group_pod("big", 0, 2, node=""))

    assert groups_of(leader, leader_accelerators=0) == [("big-0", ())]
    assert groups_of(leader, *workers, leader_accelerators=0) == [("big-0", ("n1",))]
    assert groups_of(leader, accelerators=0) == [("big-0", ("cpu",))]


def test_a_group_whose_leader_is_being_deleted_keeps_its_name() -> None:
    """The restart policy RecreateGroupOnPodRestart deletes the leader before its workers."""
    leader, *workers = (group_pod("big", 0, number, node=f"n{number}", accelerators=4) for number in range(3))
    leader["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert groups_of(leader, *workers) == [("big-0", ("n1", "n2"))]


def test_groups_with_a_ready_leader_are_told_by_their_numbers() -> None:
    """A scale-down removes the highest. A Deployment's pods that are not ready go first."""
    pending = group_pod("big", 0, 0, node="", accelerators=4)
    ready = [group_pod("big", 2, worker, node="n", accelerators=4) for worker in (0, 1)]
    claim = placed(variant("big", scaleTargetRef=BIG))

    found = gathered(claim, placed(variant("chat")), others=(big(),), pods=(pending, *ready, pod("chat-x")))

    assert {item.name: item.ready_ordinals for item in found.snapshot.variants} == {"big": (2,), "chat": ()}


def test_an_unsupported_leader_worker_set_is_unplanned_without_affecting_others() -> None:
    """The message gives the reason."""
    claim = placed(variant("big", scaleTargetRef=BIG))

    found = gathered(claim, placed(variant("chat")), others=(big(leader_accelerators=1),))

    assert [item.name for item in found.snapshot.variants] == ["chat"]
    assert found.unplanned["ns", "big"].reason == "TargetNotSupported"
    assert "its leader requests 1 accelerator and" in found.unplanned["ns", "big"].message


def test_scheduling_rules_of_pods_are_planned_or_reported_as_unsupported() -> None:
    """The rules are those of the Deployment's pod template."""
    picky = placed(deployment("chat", product=A100, accelerators=2))
    rule = {"maxSkew": 2, "whenUnsatisfiable": "DoNotSchedule"}
    own = {"labelSelector": {"matchLabels": {"app": "chat"}}}
    picky["spec"]["template"]["spec"]["topologySpreadConstraints"] = [
        rule | own | {"topologyKey": "zone"},
        rule | own | {"topologyKey": "kubernetes.io/hostname"},
        rule | {"topologyKey": "room"},
        rule | own | {"topologyKey": "rack"},
    ]

    found = gathered(placed(variant("chat")), deployments=(picky,))

    (planned,) = found.snapshot.variants
    assert planned.rules.spread == Spread(topology_key="zone", max_skew=2)
    assert planned.rules.most_per_node == MostPerNode(pods=2)
    assert [[(item.key, item.operator) for item in term] for term in planned.node_affinity] == [
        [("room", "Exists")]
    ]
    (problem,) = found.problems
    assert problem.startswith("Deployment ns/chat: spread over rack with a skew of at most 2: ")
