"""Targets that pods belong to, and the order in which pods are removed."""

from __future__ import annotations

from typing import Any

from apiserver.schema.json import Json
from controller.observe.pods import by_target, removal_order
from controller.observe.targets import TargetKey, TargetKind


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
