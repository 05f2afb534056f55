"""Objects of a small live cluster: a model on two types of accelerators, decided on by the controller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final

from apiserver.cluster.heartbeat import Heartbeat
from apiserver.cluster.resource import (
    AUTOSCALING_POLICY_BINDINGS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from controller.commands.plan.configuring import configuration_in_cluster
from controller.commands.plan.gathering import InputsResult
from controller.commands.status.assemble import fleet_of
from controller.commands.status.fleet import FleetState
from controller.commands.status.reading import LiveObjects
from controller.commands.status.run import gathering_of
from support.manifests import Manifest, autoscaler, deployment, l4_node, variant

NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
SERVICE_LEVEL: Final = {
    "ttftTarget": "2", "itlTarget": "0.08", "promised": "0.95", "attained": "0.97",
    "ttftMissed": "0.021", "itlMissed": "0.0093", "requests": 1000,
}  # fmt: skip


def decided(value: Manifest, ready: str = "True", why: str = "Steady", **decision: Any) -> Manifest:
    """Return a VariantAutoscaling with a status; `ready` and `why` are those of its condition `Ready`."""
    known = {
        "reason": "Steady", "message": f"{value['metadata']['name']} stays", "priority": 10,
        "demand": {"requestsPerSecond": "4", "upperRequestsPerSecond": "6", "startSeconds": 60},
        "costPerReplica": "40.0", "unconstrainedReplicas": 2, "grantedReplicas": 2, "unmetPerMille": 0,
    }  # fmt: skip
    message = decision.get("message", known["message"])
    return value | {
        "status": {
            "currentAlloc": {"accelerator": "L4", "numReplicas": 2},
            "desiredOptimizedAlloc": {"numReplicas": 2, "lastRunTime": "2026-01-01T11:59:50Z"},
            "decision": known | decision,
            "conditions": [condition(ready, why, message)],
        }
    }


def condition(status: str, reason: str, message: str) -> Manifest:
    """Return the condition `Ready`."""
    since = "2026-01-01T11:00:00Z"
    named = {"type": "Ready", "status": status, "reason": reason, "message": message}
    return named | {"lastTransitionTime": since, "observedGeneration": 1}


def pod_of(name: str, number: int, *, node: str = "", accelerators: int = 1) -> Manifest:
    """Return a ready pod of a Deployment, or without a node a pending one."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{name}-6d4cf56db6", "controller": True}
    status = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T11:00:00Z"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-6d4cf56db6-{number:05}",
            "labels": {"app": name, "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [owner],
        },
        "spec": {
            "containers": [{"name": "vllm", "resources": {"limits": {"nvidia.com/gpu": accelerators}}}],
            **({"nodeName": node} if node else {}),
        },
        "status": {"phase": "Running" if node else "Pending", "conditions": [status] if node else []},
    }


def usual_objects() -> dict[Resource, list[Manifest]]:
    """Return a variant with two replicas of one accelerator, one of them pending, beside another pod."""
    return {
        NODES: [l4_node("n1"), l4_node("n2") | {"spec": {"unschedulable": True}}],
        PODS: [
            pod_of("chat", 0, node="n1"),
            pod_of("chat", 1),
            pod_of("other", 0, node="n1", accelerators=2),
        ],
        DEPLOYMENTS: [deployment("chat", product="NVIDIA-L4", accelerators=1, replicas=2)],
        HORIZONTAL_POD_AUTOSCALERS: [autoscaler("chat")],
        VARIANT_AUTOSCALINGS: [decided(variant("chat"))],
        AUTOSCALING_POLICY_BINDINGS: [],
    }


def live(objects: Mapping[Resource, Iterable[Manifest]], **more: Any) -> LiveObjects:
    """Return objects as they are read from a cluster: in a namespace, and with a version."""
    stored = {resource: [_stored(item, resource) for item in items] for resource, items in objects.items()}
    beat = Heartbeat(time=NOW)
    usual: dict[str, Any] = {"heartbeat": beat, "system": "stowplan-system"}
    return LiveObjects(objects=stored, **usual | more)


def fleet(objects: Mapping[Resource, Iterable[Manifest]], **more: Any) -> FleetState:
    """Return the state of a fleet of some objects."""
    read = live(objects, **more)
    return fleet_of(read, planned(read), now=NOW)


def planned(read: LiveObjects) -> InputsResult:
    """Return what planning makes of objects, with their settings."""
    return gathering_of(read, configuration_in_cluster(read.settings), now=NOW)


def _stored(value: Manifest, resource: Resource) -> Manifest:
    named = {"apiVersion": resource.api_version, "kind": resource.kind}
    place = {"namespace": "ns"} if resource.namespaced else {}
    own = {
        "resourceVersion": "1",
        "uid": value["metadata"]["name"],
        "creationTimestamp": "2026-01-01T10:00:00Z",
    }
    return {**value, **named, "metadata": {**value["metadata"], **place, **own}}
