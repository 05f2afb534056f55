"""Scale targets with replicas of one or several pods: their pods, accelerators and removal order."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from support.manifests import Manifest
from support.workloads import group_pod, leader_worker_set, stateful_pod, stateful_set

from apiserver.schema.json import Json
from controller.observe.pods import by_target, has_engine
from controller.observe.replicas import replicas_of
from controller.observe.targets import (
    Target,
    TargetKey,
    TargetKind,
    UnplannableTargetError,
    target_key,
    target_of,
)

H100 = "NVIDIA-H100-80GB-HBM3"
SET = TargetKey(TargetKind.LEADER_WORKER_SET, "ns", "big")


def groups(**changes: object) -> Target:
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
