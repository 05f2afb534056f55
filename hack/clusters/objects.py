"""The Kubernetes objects of a generated cluster."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.planning.load import Capacity, CapacitySource
from controller.variants.placing import GATE
from hack.controlplane.nodes import Node

CLUSTER_LABEL: Final = "stowplan.dev/cluster"
CAPACITY: Final = Capacity(requests_per_second=1.0, source=CapacitySource.STATED)
"""Capacity of one replica of any variant."""

_HASH: Final = "5d4f8c"
_DEDICATED: Final = {"key": "dedicated", "value": "engines", "effect": "NoSchedule"}
_READY: Final = {"type": "Ready", "status": "True"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Shape:
    """A variant: the resources and constraints of its pods."""

    name: str
    cluster: str
    accelerators: int
    selector: Mapping[str, str]
    """Node selector in addition to the cluster's own label."""

    tolerates_dedicated: bool
    cost: int

    @property
    def model_id(self) -> str:
        """The variant's own model."""
        return f"model/{self.name}"

    def may_use(self, node: Json) -> bool:
        """Tell whether a pod may be bound to a node of the same cluster, by labels and taints."""
        fits = self.selector.items() <= node["metadata"]["labels"].items()
        return fits and (self.tolerates_dedicated or not node["spec"]["taints"])

    def pod_spec(self) -> Json:
        """Return the pod spec that the template and pods share."""
        container: Json = {
            "name": "vllm",
            "image": "vllm",
            "resources": {"limits": {"nvidia.com/gpu": str(self.accelerators)}},
        }
        tolerations = [{"key": "dedicated", "operator": "Exists"}] if self.tolerates_dedicated else []
        return {
            "nodeSelector": {CLUSTER_LABEL: self.cluster, **self.selector},
            "tolerations": tolerations,
            "containers": [container],
            "terminationGracePeriodSeconds": 0,  # there is no kubelet to report termination
        }


def node(name: str, *, cluster: str, product: str, accelerators: int, pool: str, is_dedicated: bool) -> Json:
    """Return a ready Node."""
    manifest: Json = Node(name=name, accelerator=product, accelerator_count=accelerators).manifest()
    manifest["metadata"]["labels"] |= {CLUSTER_LABEL: cluster, "pool": pool}
    manifest["status"]["conditions"] = [_READY]
    return manifest | {"spec": {"taints": [_DEDICATED] if is_dedicated else []}}


def pod(name: str, spec: Json, *, labels: Mapping[str, str], owner: str | None) -> Json:
    """Return a Pod; with an owner, it looks as if the ReplicaSet of a Deployment had created it."""
    metadata: Json = {"name": name, "labels": dict(labels)}
    if owner is not None:
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{owner}-{_HASH}"}
        metadata["ownerReferences"] = [{**reference, "uid": f"uid-{owner}", "controller": True}]
        metadata["labels"] |= {"app": owner, "pod-template-hash": _HASH}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def bound_pod(name: str, host: Json, *, size: int, shape: Shape | None, cluster: str) -> Json:
    """Return a running pod: a replica, or a workload of someone else."""
    if shape is None:
        other = Shape(
            name=name, cluster=cluster, accelerators=size, selector={}, tolerates_dedicated=True, cost=0
        )
        spec = other.pod_spec()
    else:
        spec = shape.pod_spec()
    spec["nodeName"] = host["metadata"]["name"]
    return pod(name, spec, labels={CLUSTER_LABEL: cluster}, owner=shape.name if shape else None)


def new_pod(
    name: str, shape: Shape, *, scheduler: str, priority_class: str = "", is_gated: bool = False
) -> Json:
    """Return a replica that waits for a scheduler, or for the controller to remove its gate."""
    spec = shape.pod_spec() | {"schedulerName": scheduler}
    spec |= {"priorityClassName": priority_class} if priority_class else {}
    spec |= {"schedulingGates": [{"name": GATE}]} if is_gated else {}
    return pod(name, spec, labels={CLUSTER_LABEL: shape.cluster}, owner=shape.name)


def deployment(shape: Shape, replicas: int) -> Json:
    """Return the scale target of a variant."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": shape.name},
        "spec": {"replicas": replicas, "template": {"spec": shape.pod_spec()}},
    }


def variant(shape: Shape, namespace: str) -> Json:
    """Return the VariantAutoscaling of a shape."""
    return {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {"namespace": namespace, "name": shape.name},
        "spec": {
            "modelID": shape.model_id,
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": shape.name},
            "variantCost": str(shape.cost),
        },
    }
