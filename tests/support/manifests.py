"""Manifests for tests: valid by default, with changeable fields."""

from __future__ import annotations

import json
import os
from typing import Any, Final

from hack.controlplane.modules import OLDEST_KUBERNETES, chosen_kubernetes

Manifest = dict[str, Any]

_EXACTLY: Final[Manifest] = {} if chosen_kubernetes(os.environ) is OLDEST_KUBERNETES else {"tolerance": "0"}
"""Omitted for the oldest release, whose HorizontalPodAutoscalers lack it and ignore small differences."""

PERF_PARMS = {
    "decodeParms": {"alpha": "20.58", "beta": "0.41"},
    "prefillParms": {"gamma": "5.2", "delta": "0.1"},
}


def variant(
    name: str, *, version: str = "v1alpha2", labels: dict[str, str] | None = None, **spec: Any
) -> Manifest:
    """Return a VariantAutoscaling of the current shape whose Deployment has the same name."""
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}
    body = {"modelID": "meta/llama-3.1-8b", "scaleTargetRef": target, "variantCost": "40.0"} | spec
    return _variant(name, version, {key: value for key, value in body.items() if value is not None}, labels)


def legacy_variant(name: str, **spec: Any) -> Manifest:
    """Return a VariantAutoscaling of the legacy shape."""
    body = {
        "modelID": "meta/llama-3.1-8b",
        "variantID": "meta/llama-3.1-8b-A100-1",
        "accelerator": "A100",
        "acceleratorCount": 1,
        "sloClassRef": {"name": "service-classes-config", "key": "premium.yaml"},
        "variantProfile": {"perfParms": PERF_PARMS, "maxBatchSize": 4},
    }
    return _variant(name, "v1alpha1", body | spec, None)


def profiled_variant(name: str) -> Manifest:
    """Return a VariantAutoscaling of the modelProfile shape."""
    entry = {"acc": "A100", "accCount": 1, "perfParms": PERF_PARMS, "maxBatchSize": 4}
    spec = {"modelID": "meta/llama-3.1-8b", "modelProfile": {"accelerators": [entry]}}
    return _variant(name, "v1alpha1", spec, None)


def deployment(
    name: str,
    *,
    product: str,
    accelerators: int,
    replicas: int = 1,
    annotations: dict[str, str] | None = None,
) -> Manifest:
    """Return a Deployment of engines on one type of accelerator; annotations are those of the pods."""
    container = {
        "name": "vllm",
        "image": "vllm",
        "args": ["--max-num-seqs=64"],
        "ports": [{"name": "http", "containerPort": 8000}],
        "resources": {"limits": {"nvidia.com/gpu": accelerators}},
    }
    pod = {"nodeSelector": {"nvidia.com/gpu.product": product}, "containers": [container]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}, "annotations": annotations or {}},
                "spec": pod,
            },
        },
    }


def node(
    name: str,
    *,
    accelerators: int = 8,
    product: str = "",
    labels: dict[str, str] | None = None,
    **spec: Any,
) -> Manifest:
    """Return a ready node."""
    named = {"nvidia.com/gpu.product": product} if product else {}
    return {
        "metadata": {"name": name, "labels": named | (labels or {})},
        "spec": spec,
        "status": {
            "allocatable": {"nvidia.com/gpu": str(accelerators)},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def pod_of(name: str, node: str, *, accelerators: int = 1, **annotations: str) -> Manifest:
    """Return the ready pod of a Deployment on a node."""
    reference = {"kind": "ReplicaSet", "name": f"{name}-abc", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": f"{name}-{node}",
            "labels": {"app": name, "pod-template-hash": "abc"},
            "annotations": annotations,
            "ownerReferences": [reference],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"limits": {"nvidia.com/gpu": str(accelerators)}}}],
        },
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


def l4_node(name: str, *, accelerators: int = 4, labels: dict[str, str] | None = None) -> Manifest:
    """Return the manifest of a node with L4 accelerators."""
    found = node(name, accelerators=accelerators, product="NVIDIA-L4", labels=labels)
    return {"apiVersion": "v1", "kind": "Node", **found}


def autoscaler(name: str, *, most: int = 10, least: int = 1) -> Manifest:
    """Return a HorizontalPodAutoscaler that follows a variant's decision without delay and tolerance."""
    metric = {"name": "wva_desired_replicas", "selector": {"matchLabels": {"variant_name": name}}}
    policy = {"type": "Pods", "value": 20, "periodSeconds": 15}
    direction = _EXACTLY | {"stabilizationWindowSeconds": 0, "policies": [policy]}
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": least,
            "maxReplicas": most,
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            "behavior": {"scaleUp": direction, "scaleDown": direction},
        },
    }


def listed(*manifests: Manifest) -> str:
    """Return manifests as one document for `kubectl apply --filename=-`."""
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": list(manifests)})


def _variant(name: str, version: str, spec: Manifest, labels: dict[str, str] | None) -> Manifest:
    return {
        "apiVersion": f"llmd.ai/{version}",
        "kind": "VariantAutoscaling",
        "metadata": {"name": name} | ({"labels": labels} if labels else {}),
        "spec": spec,
    }
