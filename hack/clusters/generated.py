"""Small random clusters: nodes, running pods, and variants whose total demand exceeds the capacity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

from apiserver.schema.json import Json
from controller.commands.plan.changes import stated_load
from controller.planning.load import Capacity, CapacitySource, ModelLoad
from controller.variants.placing import GATE
from hack.controlplane.nodes import KwokNode

CLUSTER_LABEL: Final = "stowplan.dev/cluster"
CAPACITY: Final = Capacity(requests_per_second=1.0, source=CapacitySource.STATED)
"""Capacity of one replica of any variant."""

_HASH: Final = "5d4f8c"
_DEDICATED: Final = {"key": "dedicated", "value": "engines", "effect": "NoSchedule"}
_READY: Final = {"type": "Ready", "status": "True"}


@dataclass(frozen=True, kw_only=True, slots=True)
class PodShape:
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
    manifest: Json = KwokNode(name=name, accelerator=product, accelerator_count=accelerators).manifest()
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


def bound_pod(name: str, host: Json, *, size: int, shape: PodShape | None, cluster: str) -> Json:
    """Return a running pod: a replica, or a workload of someone else."""
    if shape is None:
        other = PodShape(
            name=name, cluster=cluster, accelerators=size, selector={}, tolerates_dedicated=True, cost=0
        )
        spec = other.pod_spec()
    else:
        spec = shape.pod_spec()
    spec["nodeName"] = host["metadata"]["name"]
    return pod(name, spec, labels={CLUSTER_LABEL: cluster}, owner=shape.name if shape else None)


def new_pod(
    name: str, shape: PodShape, *, scheduler: str, priority_class: str = "", is_gated: bool = False
) -> Json:
    """Return a replica that waits for a scheduler, or for the controller to remove its gate."""
    spec = shape.pod_spec() | {"schedulerName": scheduler}
    spec |= {"priorityClassName": priority_class} if priority_class else {}
    spec |= {"schedulingGates": [{"name": GATE}]} if is_gated else {}
    return pod(name, spec, labels={CLUSTER_LABEL: shape.cluster}, owner=shape.name)


def deployment(shape: PodShape, replicas: int) -> Json:
    """Return the scale target of a variant."""
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": shape.name},
        "spec": {"replicas": replicas, "template": {"spec": shape.pod_spec()}},
    }


def variant(shape: PodShape, namespace: str) -> Json:
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


NAMESPACE: Final = "clusters"
_PRODUCTS: Final = ("NVIDIA-A100-SXM4-80GB", "NVIDIA-L40S")
_POOLS: Final = ("red", "blue")
_MOST_WANTED: Final = 10


class ClusterKind(StrEnum):
    """How much the sizes and constraints of a cluster's pods vary."""

    NESTED = "nested"
    """1, 2, 4 or 8 accelerators, and every pod may run on every node."""

    MIXED = "mixed"
    """1 to 6 accelerators, of two types, with node pools and taints."""


@dataclass(frozen=True, kw_only=True, slots=True)
class GeneratedCluster:
    """The state before the plan."""

    name: str
    seed: int
    kind: ClusterKind
    nodes: tuple[Json, ...]
    pods: tuple[Json, ...]
    """All of them are bound."""

    shapes: tuple[PodShape, ...]
    loads: tuple[ModelLoad, ...]

    @property
    def deployments(self) -> dict[tuple[str, str], Json]:
        """The scale targets by namespace and name, with the number of running replicas."""
        return {
            (NAMESPACE, shape.name): deployment(shape, self._running_count(shape)) for shape in self.shapes
        }

    @property
    def autoscalings(self) -> tuple[Json, ...]:
        """One VariantAutoscaling for each of them."""
        return tuple(variant(shape, NAMESPACE) for shape in self.shapes)

    def _running_count(self, shape: PodShape) -> int:
        return sum(pod["metadata"]["labels"].get("app") == shape.name for pod in self.pods)


def generate_cluster(*, seed: int, kind: ClusterKind) -> GeneratedCluster:
    """Return the cluster for a seed."""
    name = f"{kind}-{seed}"
    random = Random(name)  # noqa: S311 (not used for security)
    nodes = tuple(_node(random, name, number, kind) for number in range(random.randint(3, 6)))
    shapes = tuple(_shape(random, name, number, kind) for number in range(random.randint(3, 6)))
    pods, free = _pods(random, name, nodes, shapes)
    loads = tuple(_load(shape, _draw_replicas(random, shape, sum(free))) for shape in shapes)
    return GeneratedCluster(
        name=name, seed=seed, kind=kind, nodes=nodes, pods=pods, shapes=shapes, loads=loads
    )


def _load(shape: PodShape, replicas: int) -> ModelLoad:
    """Return a load that needs exactly the given number of replicas."""
    rate = CAPACITY.requests_per_second * replicas
    return stated_load((NAMESPACE, shape.model_id), rate, None)


def _draw_replicas(random: Random, shape: PodShape, free: int) -> int:
    """Return the wanted replicas of a variant: a random part of the free capacity, so too many in total."""
    return random.randint(1, max(1, min(_MOST_WANTED, free // shape.accelerators)))


def _node(random: Random, cluster: str, number: int, kind: ClusterKind) -> Json:
    is_mixed = kind is ClusterKind.MIXED
    return node(
        f"{cluster}-{number}",
        cluster=cluster,
        product=random.choice(_PRODUCTS) if is_mixed else _PRODUCTS[0],
        accelerators=random.choice((4, 6, 8, 8) if is_mixed else (4, 8, 8)),
        pool=random.choice(_POOLS) if is_mixed else _POOLS[0],
        is_dedicated=is_mixed and random.random() < 0.25,  # noqa: PLR2004 (a share)
    )


def _shape(random: Random, cluster: str, number: int, kind: ClusterKind) -> PodShape:
    is_mixed = kind is ClusterKind.MIXED
    selector: dict[str, str] = {}
    if is_mixed:
        selector |= {"nvidia.com/gpu.product": random.choice(_PRODUCTS)} if random.random() < 0.7 else {}  # noqa: PLR2004
        selector |= {"pool": random.choice(_POOLS)} if random.random() < 0.3 else {}  # noqa: PLR2004
    return PodShape(
        name=f"{cluster}-v{number}",
        cluster=cluster,
        accelerators=random.choice((1, 2, 3, 4, 5, 6) if is_mixed else (1, 1, 2, 2, 4, 8)),
        selector=selector,
        tolerates_dedicated=is_mixed and random.random() < 0.5,  # noqa: PLR2004
        cost=random.randint(1, 40),
    )


def _pods(
    random: Random, cluster: str, nodes: tuple[Json, ...], shapes: tuple[PodShape, ...]
) -> tuple[tuple[Json, ...], list[int]]:
    """Return pods that use a part of each node, ours and others', and the free accelerators of each node."""
    pods: list[Json] = []
    free = []
    for host in nodes:
        room = int(host["status"]["allocatable"]["nvidia.com/gpu"])
        aim = random.randint(room // 3, room)
        while room > aim:
            ours = [shape for shape in shapes if shape.accelerators <= room and shape.may_use(host)]
            shape = random.choice([*ours, None])
            size = shape.accelerators if shape else random.randint(1, min(room, 3))
            pods.append(bound_pod(f"{cluster}-p{len(pods)}", host, size=size, shape=shape, cluster=cluster))
            room -= size
        free.append(room)
    return tuple(pods), free
