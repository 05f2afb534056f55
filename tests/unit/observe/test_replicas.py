"""Pods as replicas: their order, those that are late, and those that wait in vain for a node."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from apiserver.schema.json import Json
from controller.observe.pods import by_target, removal_order
from controller.observe.replicas import lateness, stalled_replicas
from controller.observe.targets import GROUP_INDEX, TargetKey, TargetKind
from controller.planning.cluster import NodePool


def pod(name: str, *, node: str = "n1", ready_time: str = "2026-01-01T00:00:00Z", **metadata: object) -> Json:
    """Return a running pod of Deployment `web`; an empty ready_time makes it unready."""
    owner = {"kind": "ReplicaSet", "name": "web-abc", "controller": True}
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": ready_time}] if ready_time else []
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "labels": {"pod-template-hash": "abc"},
            "ownerReferences": [owner],
            "creationTimestamp": "2026-01-01T00:00:00Z",
            **metadata,
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running", "conditions": conditions},
    }


def test_removal_order_follows_that_of_a_replica_set() -> None:
    """It is: unbound, unready, lower deletion cost, more pods on the node, younger."""
    cheap: dict[str, Any] = {"annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5"}}
    pods = [
        pod("old", node="n3"),
        pod("crowded-a"),
        pod("crowded-b"),
        pod("young", node="n4", ready_time="2026-01-02T00:00:00Z"),
        pod("cheap", node="n5", **cheap),
        pod("unready", node="n6", ready_time=""),
        pod("unbound", node="", ready_time=""),
    ]

    names = [item["metadata"]["name"] for item in removal_order(pods)]

    assert names == ["unbound", "unready", "cheap", "crowded-a", "crowded-b", "young", "old"]


def test_only_active_pods_of_targets_are_grouped() -> None:
    """Pods of others, finished pods and those being deleted are left out."""
    stranger = pod("stranger", ownerReferences=[{"kind": "Job", "name": "web", "controller": True}])
    leaving = pod("leaving", deletionTimestamp="2026-01-01T00:00:00Z")
    done = pod("done")
    done["status"]["phase"] = "Succeeded"

    groups = by_target([pod("mine"), stranger, leaving, done])

    assert {key: [item["metadata"]["name"] for item in found] for key, found in groups.items()} == {
        TargetKey(TargetKind.DEPLOYMENT, "ns", "web"): ["mine"]
    }


NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def started_pod(
    name: str = "llama-0",
    *,
    started: int | None = 3600,
    changed: int | None = None,
    ready: str = "False",
    labels: Json | None = None,
) -> Json:
    """Return a pod with the times in seconds since its start and since its readiness changed."""
    condition = {"type": "Ready", "status": ready} | _ago("lastTransitionTime", changed)
    return {
        "metadata": {"name": name, "labels": labels or {}},
        "status": {"conditions": [{"type": "PodScheduled", "status": "True"}, condition]}
        | _ago("startTime", started),
    }


def _ago(name: str, seconds: int | None) -> Json:
    return {} if seconds is None else {name: (NOW - timedelta(seconds=seconds)).isoformat()}


WORKER = {"leaderworkerset.sigs.k8s.io/worker-index": "1"}
LATE = {
    "a ready replica": ([started_pod(ready="True")], 120, ""),
    "a replica that waits for a node": ([started_pod(started=None)], 120, ""),
    "a replica that is starting": ([started_pod(started=590)], 120, ""),
    "a replica that has just become unready": ([started_pod(changed=590)], 120, ""),
    "a replica of which only the start is known": (
        [started_pod()],
        120,
        "llama-0 has not been ready for more than 600 s",
    ),
    "a replica that became unready long ago": (
        [started_pod(changed=610)],
        120,
        "llama-0 has not been ready for more than 600 s",
    ),
    "a variant whose starts take long": ([started_pod(changed=800)], 300, ""),
    "several replicas": (
        [started_pod("llama-1"), started_pod("llama-0", changed=1000), started_pod("llama-2", ready="True")],
        300,
        "llama-0 and 1 more replica have not been ready for more than 900 s",
    ),
    "a worker of a group, whose leader counts": ([started_pod(labels=WORKER)], 120, ""),
}


@pytest.mark.parametrize(("pods", "start_seconds", "told"), LATE.values(), ids=LATE.keys())
def test_replicas_are_late_after_three_starts_and_ten_minutes(
    pods: list[Json], start_seconds: float, told: str
) -> None:
    """Only those on a node count: others wait for a place, which other messages explain."""
    assert lateness(pods, start_seconds=start_seconds, now_seconds=NOW.timestamp()) == told


LATER_SECONDS = 10_000.0
POOL = NodePool(
    name="h100", accelerator="H100", accelerators_per_node=8, price_per_node=Decimal(0), nodes_addable=1
)


def waiting_pod(name: str, minutes: int, *, node: str = "", group: str = "", gate: str = "") -> Json:
    """Return a pod that was created some minutes ago, and has no node unless one is given."""
    began = f"1970-01-01T{(10_000 - 60 * minutes) // 3600:02}:{(10_000 - 60 * minutes) % 3600 // 60:02}:40Z"
    scheduled = {"type": "PodScheduled", "status": "True" if node else "False", "lastTransitionTime": began}
    return {
        "metadata": {"name": name, "labels": {GROUP_INDEX: group} if group else {}},
        "spec": ({"nodeName": node} if node else {})
        | ({"schedulingGates": [{"name": gate}]} if gate else {}),
        "status": {"conditions": [scheduled]},
    }


WAITING: dict[str, tuple[list[Json], int]] = {
    "a pod that waits for 14 minutes": ([waiting_pod("a", 14)], 0),
    "pods that wait for 16 minutes": ([waiting_pod("a", 16), waiting_pod("b", 16), waiting_pod("c", 1)], 2),
    "a pod with a node": ([waiting_pod("a", 16, node="n")], 0),
    "a pod that the scheduler does not consider": ([waiting_pod("a", 16, gate="example.com/quota")], 0),
    "a pod that the scheduler has not seen": ([waiting_pod("a", 16) | {"status": {}}], 0),
    "a group without any node": ([waiting_pod("a", 16, group="0"), waiting_pod("b", 16, group="0")], 1),
    "a group of which a pod has a node": (
        [waiting_pod("a", 16, group="0"), waiting_pod("b", 16, group="0", node="n")],
        0,
    ),
}


@pytest.mark.parametrize(("pods", "want"), WAITING.values(), ids=WAITING.keys())
def test_replicas_without_a_node_are_stalled_after_a_quarter_of_an_hour(pods: list[Json], want: int) -> None:
    """A group that is bound in part needs room in its domain, and not new nodes."""
    assert stalled_replicas(pods, [POOL], "H100", now_seconds=LATER_SECONDS) == want


@pytest.mark.parametrize(
    "pools", [(), (replace(POOL, nodes_addable=0),), (replace(POOL, accelerator="A100"),)], ids=repr
)
def test_nobody_waits_for_nodes_that_cannot_be_added(pools: tuple[NodePool, ...]) -> None:
    """Replicas without a place are then not granted, and node autoscalers need not see their pods."""
    assert stalled_replicas([waiting_pod("a", 16)], pools, "H100", now_seconds=LATER_SECONDS) == 0


@pytest.mark.parametrize(("accelerator", "want"), [("H100", 0), ("A100", 1), ("", 0)])
def test_a_longer_lead_time_of_nodes_is_waited_for_three_times(accelerator: str, want: int) -> None:
    """It is declared for pools of one accelerator type."""
    pools = (replace(POOL, lead_seconds=400), replace(POOL, name="a100", accelerator="A100"))

    assert stalled_replicas([waiting_pod("a", 18)], pools, accelerator, now_seconds=LATER_SECONDS) == want
