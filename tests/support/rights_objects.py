"""Objects whose processing uses every permission."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from support.binding_bench import bound, policy
from support.manifests import Manifest, autoscaler, deployment, listed, variant
from support.models import POLICY, backend, loading_backend, model, worker
from support.routes import route, server
from support.traffic import objective, pool
from support.workloads import leader_worker_set, stateful_set

PRODUCT: Final = "NVIDIA-L4"
NAMESPACE: Final = "default"
_GATED: Final = {"schedulingGates": [{"name": "stowplan.dev/placement"}]}
_BEHIND_GATEWAYS: Final = {
    "stowplan.dev/parent-refs": "infra/inference",
    "stowplan.dev/request-priority": "10",
}


def standing() -> list[Manifest]:
    """Return the objects that exist all the time."""
    gated = deployment("gated", product=PRODUCT, accelerators=1)
    gated["spec"]["template"]["spec"] |= _GATED
    return [
        deployment("chat", product=PRODUCT, accelerators=1),
        gated,
        stateful_set("stateful", product=PRODUCT, accelerators=1),
        leader_worker_set("group", product=PRODUCT, accelerators=1, size=1),
        policy("waiting"),
        pool("llama", {"app": "chat"}, namespace=NAMESPACE),
        server(model="Qwen/Qwen3-8B"),
    ]


def renewed() -> list[Manifest]:
    """Return the objects that are decided on, expanded, translated or reported on."""
    kinds = {"chat": ("apps/v1", "Deployment"), "stateful": ("apps/v1", "StatefulSet")}
    kinds |= {"group": ("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet")}
    bindings = []
    for name, (api_version, kind) in kinds.items():
        binding = bound(name, name)
        target = binding["spec"]["scalingConfiguration"]["target"]["targetRef"]
        target |= {"apiVersion": api_version, "kind": kind}
        bindings.append(binding)
    return [
        variant("gated"),
        *bindings,
        _model(),
        *_annotated(),
        objective("urgent", namespace=NAMESPACE),
        route(annotations=_BEHIND_GATEWAYS),
    ]


def _annotated() -> Iterator[Manifest]:
    terms = {"llm-d.ai/managed": "true", "llm-d.ai/model-id": "m"}
    spec = {"scaleTargetRef": {"name": "annotated"}}
    scaled = {"apiVersion": "keda.sh/v1alpha1", "kind": "ScaledObject", "spec": spec}
    for item, name in ((autoscaler("annotated"), "annotated"), (scaled, "scaled")):
        yield item | {"metadata": {"name": name, "annotations": terms}}


def shrunk() -> list[Manifest]:
    """Return a Model and a ModelRoute that no longer need the objects made for them."""
    return [model(backend("other")), route()]


def _model() -> Manifest:
    """Return a Model with a scaled Deployment, a scaled LeaderWorkerSet and a list of adapters."""
    scaled = {"maxReplicas": 4, "autoscalingPolicy": POLICY}
    return model(
        backend(**scaled),
        backend("wide", workers=[worker(pods=2)], **scaled),
        loading_backend("law", of="lora"),
    )


def _definition(plural: str, group: str, kind: str, version: str, scope: str) -> Manifest:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {
            "name": f"{plural}.{group}",
            "labels": {"rights": "others"},
            "annotations": {"api-approved.kubernetes.io": "unapproved, for tests"},
        },
        "spec": {
            "group": group,
            "scope": scope,
            "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": True, "storage": True, "schema": schema}],
        },
    }


SERVED_BY_OTHERS: Final = listed(
    _definition("scaledobjects", "keda.sh", "ScaledObject", "v1alpha1", "Namespaced"),
    _definition("nodepools", "karpenter.sh", "NodePool", "v1", "Cluster"),
    _definition("inferencepools", "inference.networking.x-k8s.io", "InferencePool", "v1alpha2", "Namespaced"),
)
"""Kinds that no module of another project defines any more, or that are not ours."""
