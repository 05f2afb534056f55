"""The few rules of a cluster that a rehearsal needs, on virtual time: Deployments, the scheduler, the HPA.

It knows nothing of planning: the same objects that a real cluster would hold go in and out.
"""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING

from controller.observe.accelerators import accelerators_of
from controller.observe.gather import World
from controller.observe.pods import removal_order, target_of_pod
from controller.observe.targets import TargetKey, TargetKind

if TYPE_CHECKING:
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

_HASH = "0000000000"


@dataclass
class VirtualCluster:
    """Nodes, and Deployments with their pods, HorizontalPodAutoscalers and VariantAutoscalings by name."""

    nodes: list[Json]
    deployments: dict[str, Json]
    autoscalers: dict[str, Json]
    autoscalings: dict[str, Json]
    pods: dict[str, Json] = field(default_factory=dict)
    _recommended: dict[str, list[tuple[float, int]]] = field(default_factory=dict)
    _scaled_to_zero: set[str] = field(default_factory=set)
    _numbers: count[int] = field(default_factory=count)

    def world(self) -> World:
        """Return the objects as caches would hold them."""
        return World(
            autoscalings=list(self.autoscalings.values()),
            targets={
                TargetKey(TargetKind.DEPLOYMENT, d["metadata"]["namespace"], name): d
                for name, d in self.deployments.items()
            },
            pods=list(self.pods.values()),
            nodes=self.nodes,
            autoscalers=list(self.autoscalers.values()),
        )

    async def apply(self, _resource: Resource, body: Json, **_options: object) -> Json:
        """Take the status that the controller writes, as the API server does with server-side apply."""
        name = body["metadata"]["name"]
        self.autoscalings[name] = self.autoscalings[name] | {"status": body["status"]}
        return self.autoscalings[name]

    async def patch_merge(self, _resource: Resource, name: str, body: Json, **_options: object) -> Json:
        """Take what the controller writes to a pod: a merge patch, in which null takes away."""
        self.pods[name] = _merged(self.pods[name], body)
        return self.pods[name]

    def record(self, _about: Json, **_event: str) -> None:
        """Take an event, which nobody reads here."""

    def autoscale(self, now_seconds: float) -> None:
        """Let every HorizontalPodAutoscaler read its metric, which is the VariantAutoscaling's status."""
        for name, autoscaler in self.autoscalers.items():
            status = self.autoscalings[name].get("status") or {}
            metric = status.get("desiredOptimizedAlloc", {}).get("numReplicas")
            if metric is None:
                continue
            spec, deployment = autoscaler["spec"], self.deployments[name]
            wanted = max(spec["minReplicas"], min(metric, spec["maxReplicas"]))
            window = spec["behavior"]["scaleDown"]["stabilizationWindowSeconds"]
            recent = [r for r in self._recommended.get(name, []) if r[0] > now_seconds - window]
            self._recommended[name] = [*recent, (now_seconds, wanted)]
            current = deployment["spec"]["replicas"]
            if current == 0 and name not in self._scaled_to_zero:
                continue  # somebody else scaled it to zero: the real one leaves it there
            if wanted < current:
                wanted = min(current, max(value for _, value in self._recommended[name]))
            deployment["spec"]["replicas"] = wanted
            if wanted == 0:
                self._scaled_to_zero.add(name)
            autoscaler["status"] = {"currentReplicas": current, "desiredReplicas": wanted}

    def reconcile(self, now_seconds: float) -> None:
        """Create and delete pods until each Deployment has its replicas, and bind those that fit."""
        for name, deployment in self.deployments.items():
            pods = [pod for pod in self.pods.values() if pod["metadata"]["labels"]["app"] == name]
            excess = len(pods) - deployment["spec"]["replicas"]
            for pod in removal_order(pods)[: max(0, excess)]:
                del self.pods[pod["metadata"]["name"]]
            for _ in range(-excess):
                self._create(deployment, now_seconds)
        for pod in self.pods.values():
            if "nodeName" not in pod["spec"]:
                self._schedule(pod)

    def _create(self, deployment: Json, now_seconds: float) -> None:
        metadata, template = deployment["metadata"], copy.deepcopy(deployment["spec"]["template"])
        name = f"{metadata['name']}-{_HASH}-{next(self._numbers):05d}"
        self.pods[name] = template | {
            "metadata": template["metadata"]
            | {
                "name": name,
                "namespace": metadata["namespace"],
                "creationTimestamp": f"{now_seconds:012.3f}",
                "labels": template["metadata"]["labels"] | {"pod-template-hash": _HASH},
                "ownerReferences": [
                    {"kind": "ReplicaSet", "name": f"{metadata['name']}-{_HASH}", "controller": True}
                ],
            },
            "status": {"phase": "Pending"},
        }

    def _schedule(self, pod: Json) -> None:
        """Bind to a node that has room, spreading the pods of one Deployment as the real scheduler does."""
        held: Counter[str] = Counter()
        siblings: Counter[str] = Counter()
        for other in self.pods.values():
            node = other["spec"].get("nodeName", "")
            held[node] += accelerators_of(other["spec"])
            siblings[node] += target_of_pod(other) == target_of_pod(pod)
        selector, asked = pod["spec"].get("nodeSelector", {}).items(), accelerators_of(pod["spec"])
        fitting = [
            (siblings[name], name)
            for name, labels, total in map(_capacity, self.nodes)
            if selector <= labels.items() and held[name] + asked <= total
        ]
        if fitting:
            pod["spec"]["nodeName"] = min(fitting)[1]
            pod["status"] = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}


def _capacity(node: Json) -> tuple[str, dict[str, str], int]:
    metadata = node["metadata"]
    return metadata["name"], metadata["labels"], int(node["status"]["allocatable"]["nvidia.com/gpu"])


def _merged(old: Json, patch: Json) -> Json:
    """Return an object with a JSON merge patch applied (RFC 7396)."""
    merged = dict(old)
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key) or {}, value) if isinstance(value, dict) else value
    return merged
