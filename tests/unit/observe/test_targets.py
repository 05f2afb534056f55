"""Scale targets with replicas of one or several pods: their pods, accelerators and removal order."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

import pytest
from support.gathering import A100, gathered, placed, pod
from support.manifests import Manifest, autoscaler, deployment, variant
from support.workloads import group_pod, leader_worker_set, stateful_pod, stateful_set

from apiserver.schema.json import Json
from controller.observe.declarations import claims_of
from controller.observe.gather import engine_pods
from controller.observe.pods import by_target, has_engine
from controller.observe.replicas import replicas_of
from controller.observe.targets import (
    ScaleTarget,
    TargetKey,
    TargetKind,
    UnplannableTargetError,
    target_key,
    target_of,
)
from controller.planning.pod_rules import MostPerNode, Spread

H100 = "NVIDIA-H100-80GB-HBM3"
SET = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")


def groups(**changes: object) -> ScaleTarget:
    """Return a LeaderWorkerSet; by default its groups have four pods with eight accelerators each."""
    fields: Json = {"product": H100, "accelerators": 8, "size": 4} | changes
    return target_of(SET, leader_worker_set("big", **fields))


def names(pods: Sequence[Json]) -> list[str]:
    """Return the names of pods."""
    return [pod["metadata"]["name"] for pod in pods]


def test_a_stateful_set_is_read_like_a_deployment() -> None:
    """Its removal order cannot be steered."""
    key = TargetKey(TargetKind.STATEFUL_SET, "ns", "chat")
    target = target_of(key, stateful_set("chat", product=H100, accelerators=2, replicas=3))

    assert (target.replicas, target.accelerators_per_replica, target.pods_per_replica) == (3, 2, 1)
    assert not target.is_steerable
    assert target.may_move


def test_pods_with_volume_claim_templates_may_not_be_moved() -> None:
    """A volume may be bound to a node or a zone."""
    manifest = stateful_set("chat", product=H100, accelerators=2)
    manifest["spec"]["volumeClaimTemplates"] = [{"metadata": {"name": "weights"}}]

    assert not target_of(TargetKey(TargetKind.STATEFUL_SET, "ns", "chat"), manifest).may_move


def test_a_leader_worker_replica_holds_the_accelerators_of_all_its_pods() -> None:
    """With exclusive topology, the pods of a group are placed in one domain."""
    target = groups(replicas=2, exclusive_topology="rack")

    assert (target.replicas, target.pods_per_replica, target.accelerators_per_replica) == (2, 4, 32)
    assert target.together_in == "rack"
    assert not target.may_move


def test_a_leader_worker_group_without_a_size_has_one_pod() -> None:
    """A size of 1 is the default of its API."""
    manifest = leader_worker_set("big", product=H100, accelerators=8, size=1, leader_accelerators=2)
    manifest["spec"]["leaderWorkerTemplate"].pop("size")

    assert target_of(SET, manifest).accelerators_per_replica == 2


@pytest.mark.parametrize(("leader", "worker", "holding"), [(0, 8, 3), (8, 0, 1), (8, 8, 4)])
def test_only_pods_with_accelerators_count_as_pods_of_a_replica(
    leader: int, worker: int, holding: int
) -> None:
    """The leader or the workers may have none."""
    target = groups(accelerators=worker, leader_accelerators=leader)

    assert (target.pods_per_replica, target.pods_in_all) == (holding, 4)
    assert target.accelerators_per_replica == 8 * holding


def _picky_leader() -> Manifest:
    manifest = leader_worker_set("big", product=H100, accelerators=8, size=2, leader_accelerators=8)
    manifest["spec"]["leaderWorkerTemplate"]["leaderTemplate"]["spec"]["nodeSelector"] = {"pool": "a"}
    return manifest


UNPLANNABLE: dict[str, tuple[Manifest, str]] = {
    "a leader with fewer accelerators": (
        leader_worker_set("big", product=H100, accelerators=8, size=2, leader_accelerators=4),
        "its leader requests 4 accelerators and each worker 8",
    ),
    "a leader with another node selector": (_picky_leader(), "differ in nodeSelector"),
}


@pytest.mark.parametrize(("manifest", "why"), UNPLANNABLE.values(), ids=UNPLANNABLE)
def test_leader_worker_groups_with_unequal_pods_are_rejected(manifest: Manifest, why: str) -> None:
    """In a plan, the pods of a replica are equal."""
    with pytest.raises(UnplannableTargetError, match=why):
        target_of(SET, manifest)


REFERENCES: dict[str, tuple[Json, TargetKind]] = {
    "a Deployment without apiVersion": ({"kind": "Deployment"}, TargetKind.DEPLOYMENT),
    "a StatefulSet": ({"apiVersion": "apps/v1", "kind": "StatefulSet"}, TargetKind.STATEFUL_SET),
    "a StatefulSet of another API group": (
        {"apiVersion": "apps.kruise.io/v1", "kind": "StatefulSet"},
        TargetKind.SCALED,
    ),
    "a LeaderWorkerSet": (
        {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet"},
        TargetKind.LEADER_WORKER_SET,
    ),
}


@pytest.mark.parametrize(("reference", "kind"), REFERENCES.values(), ids=REFERENCES)
def test_a_reference_is_resolved_by_group_and_kind(reference: Json, kind: TargetKind) -> None:
    """The version does not matter."""
    found = target_key("ns", reference | {"name": "chat"})
    later = target_key("ns", reference | {"name": "chat", "apiVersion": f"{found.group or 'apps'}/v9"})

    assert found.kind == kind
    assert kind is not TargetKind.SCALED or later == found


def test_pods_of_a_stateful_set_are_removed_in_descending_ordinal_order() -> None:
    """Pods without a node come first: a removed pod frees its accelerators for them."""
    pods = [stateful_pod("chat", number, node="" if number == 1 else "n1") for number in (0, 1, 2, 10)]

    (found,) = by_target(pods).values()

    assert names(found) == ["chat-1", "chat-10", "chat-2", "chat-0"]


def test_leader_worker_groups_are_removed_in_descending_order() -> None:
    """Leaders and workers belong to different StatefulSets, but to one target."""
    pods = [group_pod("big", group, worker) for worker in (1, 0) for group in (0, 2, 10)]

    found = by_target(pods)

    assert names(found[SET]) == ["big-10", "big-10-1", "big-2", "big-2-1", "big-0", "big-0-1"]


def test_a_pod_with_the_labels_but_not_the_owner_of_a_group_does_not_belong_to_it() -> None:
    """Its controller has to be a StatefulSet of the group."""
    stray = group_pod("big", 0, 0)
    stray["metadata"]["ownerReferences"][0]["name"] = "other"

    assert [*by_target([stray])] == [TargetKey(TargetKind.STATEFUL_SET, "ns", "other")]


def test_a_leader_worker_replica_is_ready_with_its_leader_and_on_all_nodes_of_its_pods() -> None:
    """Only the leader's engine is scraped."""
    idle_worker = group_pod("big", 0, 1, node="n2")
    idle_worker["status"]["conditions"] = []
    pods = by_target([group_pod("big", 0, 0), idle_worker, group_pod("big", 1, 0, node="")])[SET]
    asked: list[tuple[str, str]] = []

    waiting, running = replicas_of(groups(), pods, asked.append)

    assert (waiting.name, waiting.nodes, waiting.ready) == ("big-1", (), False)
    assert (running.name, running.nodes, running.ready) == ("big-0", ("n1", "n2"), True)
    assert asked == [("ns", "big-1"), ("ns", "big-0")]
    assert [has_engine(pod) for pod in pods] == [True, True, False]


def test_the_node_of_a_leader_without_accelerators_is_not_counted() -> None:
    """The replica lists only nodes on which it holds accelerators."""
    pods = [group_pod("big", 0, 0, node="cpu", accelerators=0), group_pod("big", 0, 1, node="n2")]

    (found,) = replicas_of(groups(), pods, lambda _: None)

    assert (found.name, found.nodes) == ("big-0", ("n2",))


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
