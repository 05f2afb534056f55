"""Many variants with one replica each, and related objects, in a control plane without controllers.

The results of Deployments, the scheduler and kubelets are written directly: ready pods on nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from apiserver.cluster.client import Cluster
from apiserver.cluster.resource import (
    CONFIG_MAPS,
    DEPLOYMENTS,
    HORIZONTAL_POD_AUTOSCALERS,
    NODES,
    PODS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.schema.json import Json
from hack.controlplane import ControlPlane
from hack.controlplane.nodes import KwokNode

NAMESPACE: Final = "stowplan-system"
CLASSES: Final = "service-classes"

_DEFINITIONS: Final = Path(__file__).parents[2] / "manifests" / "crds" / "llmd"
_DEFINITION: Final = _DEFINITIONS / "variantautoscalings.llmd.ai.yaml"
_VARIANTS_OF_A_NAMESPACE: Final = 500
_MODELS_OF_A_CLASS: Final = 100
_PER_NODE: Final = 8
_SPARE: Final = 1.5
"""Ratio of the nodes' accelerators to those that the fleet uses, so that growth finds room."""

_WRITERS: Final = 48
_HASH: Final = "5d4f8c"
_PRODUCTS: Final = ("NVIDIA-H100-80GB-HBM3", "NVIDIA-L40S")
_READY_SINCE: Final = "2026-01-01T00:02:00Z"


@dataclass(frozen=True, slots=True)
class FleetVariant:
    """A variant of the fleet; every third model has two, on two types of accelerators."""

    number: int

    @property
    def name(self) -> str:
        """Name of all of its objects."""
        return f"v{self.number:05}"

    @property
    def namespace(self) -> str:
        """Its namespace, one of several."""
        return f"fleet-{self.number // _VARIANTS_OF_A_NAMESPACE}"

    @property
    def is_second(self) -> bool:
        """Whether it serves the same model as the variant before."""
        return self.number % 4 == 3  # noqa: PLR2004 (the last two of four variants share a model)

    @property
    def model(self) -> int:
        """Number of the model."""
        return self.number - self.is_second

    @property
    def pod(self) -> str:
        """Name of its one pod."""
        return f"{self.name}-{_HASH}-0"

    @property
    def class_key(self) -> str:
        """Key of the service class in its ConfigMap."""
        return f"class-{self.model // _MODELS_OF_A_CLASS}.yaml"


def install(control_plane: ControlPlane, count: int) -> None:
    """Apply the definition without conversion, and create the namespaces."""
    definition = yaml.safe_load(_DEFINITION.read_text(encoding="utf-8"))
    definition["spec"]["conversion"] = {"strategy": "None"}
    control_plane.apply(definition)
    control_plane.wait_until_established(definition["metadata"]["name"])
    for name in {NAMESPACE, *(FleetVariant(number).namespace for number in range(count))}:
        control_plane.kubectl("create", "namespace", name)
        control_plane.kubectl("create", "serviceaccount", "default", f"--namespace={name}")


async def create(cluster: Cluster, count: int) -> None:
    """Create all objects with limited concurrency."""
    gate = asyncio.Semaphore(_WRITERS)

    async def one(work: Awaitable[None]) -> None:
        async with gate:
            await work

    nodes = (_create(cluster, NODES, item) for item in _nodes(count))
    variants = (_variant(cluster, FleetVariant(number)) for number in range(count))
    async with asyncio.TaskGroup() as group:
        group.create_task(one(_create(cluster, CONFIG_MAPS, _classes(count))))
        for work in (*nodes, *variants):
            group.create_task(one(work))


async def _create(cluster: Cluster, resource: Resource, body: Json) -> None:
    await cluster.create(resource, body, timeout_seconds=60.0)


async def _variant(cluster: Cluster, item: FleetVariant) -> None:
    await _create(cluster, DEPLOYMENTS, _deployment(item))
    await _create(cluster, HORIZONTAL_POD_AUTOSCALERS, _autoscaler(item))
    pod = _pod(item)
    await _create(cluster, PODS, pod)
    await cluster.apply(
        PODS,
        {"metadata": {key: pod["metadata"][key] for key in ("namespace", "name")}, "status": pod["status"]},
        field_manager="kubelet",
        subresource="status",
        timeout_seconds=60.0,
    )
    await _create(cluster, VARIANT_AUTOSCALINGS, _autoscaling(item))


def _metadata(item: FleetVariant, **more: object) -> Json:
    return {"name": item.name, "namespace": item.namespace, **more}


def _autoscaling(item: FleetVariant) -> Json:
    return {
        "apiVersion": VARIANT_AUTOSCALINGS.api_version,
        "kind": VARIANT_AUTOSCALINGS.kind,
        "metadata": _metadata(item),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.name},
            "modelID": f"model-{item.model}",
            "variantCost": "10.0" if item.is_second else "40.0",
            "sloClassRef": {"name": CLASSES, "key": item.class_key},
        },
    }


def _pod_spec(item: FleetVariant) -> Json:
    container = {
        "name": "vllm",
        "image": "vllm",
        "args": ["--max-num-seqs=64"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": "1"}},
    }
    return {"nodeSelector": {"nvidia.com/gpu.product": _PRODUCTS[item.is_second]}, "containers": [container]}


def _deployment(item: FleetVariant) -> Json:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": _metadata(item),
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": item.name}},
            "template": {"metadata": {"labels": {"app": item.name}}, "spec": _pod_spec(item)},
        },
    }


def _autoscaler(item: FleetVariant) -> Json:
    metric = {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": item.name}}}
    external = {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": _metadata(item),
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": item.name},
            "minReplicas": 1,
            "maxReplicas": 8,
            "metrics": [{"type": "External", "external": external}],
        },
    }


def _pod(item: FleetVariant) -> Json:
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": f"{item.name}-{_HASH}",
        "uid": f"00000000-0000-0000-0000-{item.number:012}",
        "controller": True,
    }
    metadata = _metadata(item) | {
        "name": item.pod,
        "labels": {"app": item.name, "pod-template-hash": _HASH},
        "ownerReferences": [owner],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": _pod_spec(item) | {"nodeName": _node_name(item)},
        "status": {
            "phase": "Running",
            "startTime": "2026-01-01T00:00:00Z",
            "podIP": f"10.{item.number // 65_000}.{item.number // 250 % 250}.{item.number % 250 + 1}",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": _READY_SINCE}],
        },
    }


def _node_name(item: FleetVariant) -> str:
    kind = "second" if item.is_second else "first"
    return f"{kind}-{item.number // (4 * _PER_NODE) if item.is_second else item.number // _PER_NODE}"


def _nodes(count: int) -> Iterator[Json]:
    for kind, product, share in (("first", _PRODUCTS[0], _PER_NODE), ("second", _PRODUCTS[1], 4 * _PER_NODE)):
        for number in range(int(count / share * _SPARE) + 2):
            node = KwokNode(
                name=f"{kind}-{number}", accelerator=product, accelerator_count=_PER_NODE
            ).manifest()
            node["status"]["conditions"] = [{"type": "Ready", "status": "True"}]
            yield node


def _classes(count: int) -> Json:
    documents: dict[str, list[Json]] = {}
    for item in map(FleetVariant, range(count)):
        entry = {"model": f"model-{item.model}", "slo-tpot": 60, "slo-ttft": 2000}
        if not item.is_second:
            documents.setdefault(item.class_key, []).append(entry)
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": CLASSES, "namespace": NAMESPACE},
        "data": {
            key: yaml.safe_dump({"name": key.removesuffix(".yaml"), "priority": 5, "data": entries})
            for key, entries in documents.items()
        },
    }


def pods_of(count: int) -> Iterable[tuple[str, str]]:
    """Return namespace and name of all pods."""
    return ((item.namespace, item.pod) for item in map(FleetVariant, range(count)))
