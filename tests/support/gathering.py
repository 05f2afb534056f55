"""A small world around one Deployment, and the snapshot gathered from it."""

from __future__ import annotations

from decimal import Decimal

from apiserver.schema.json import Json
from controller.engines.records import Idleness
from controller.observe.gather import (
    GatherResult,
    PlanningTerms,
    World,
    claims_in,
    gather,
    never_asked,
)
from controller.observe.policies import Policies, ServiceClass
from controller.observe.replicas import ReportAge
from controller.observe.targets import TargetKey, TargetKind
from support.manifests import autoscaler, deployment

PREMIUM = ServiceClass(name="Premium", priority=2, ttft_ms={"other": 1}, tpot_ms={})
NOW_SECONDS = 1767225600.0  # 2026-01-01T00:00:00Z
POLICIES = Policies(unit_costs={"A100": Decimal("40.00")}, classes={("classes", "premium"): PREMIUM})


def placed(manifest: Json, **metadata: object) -> Json:
    """Return a manifest as the API server would store it."""
    base = {"namespace": "ns", "uid": "u", "creationTimestamp": "2026-01-01T00:00:00Z", "generation": 1}
    return manifest | {"metadata": base | manifest["metadata"] | metadata}


def key_of(manifest: Json) -> TargetKey:
    """Return the target key of a manifest."""
    metadata = manifest["metadata"]
    return TargetKey(TargetKind(manifest["kind"]), metadata["namespace"], metadata["name"])


def pod(name: str, *, owner: str = "chat", node: str = "n1", accelerators: int = 1) -> Json:
    """Return a ready pod of a Deployment, or one without an owner."""
    reference = {"kind": "ReplicaSet", "name": f"{owner}-abc", "controller": True}
    return {
        "metadata": {
            "namespace": "ns",
            "name": name,
            "labels": {"pod-template-hash": "abc"},
            "ownerReferences": [reference] if owner else [],
        },
        "spec": {
            "nodeName": node,
            "containers": [{"resources": {"requests": {"nvidia.com/gpu": accelerators}}}],
        },
        "status": {
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        },
    }


NODE: Json = {
    "metadata": {"name": "n1", "labels": {"nvidia.com/gpu.product": "NVIDIA-A100-PCIE-80GB"}},
    "spec": {
        "taints": [{"key": "gpu", "effect": "NoSchedule"}, {"key": "soft", "effect": "PreferNoSchedule"}]
    },
    "status": {
        "allocatable": {"nvidia.com/gpu": "8", "cpu": "96"},
        "conditions": [{"type": "Ready", "status": "True"}],
    },
}
A100 = "NVIDIA-A100-PCIE-80GB"
CHAT = placed(deployment("chat", product=A100, accelerators=2, replicas=3))


def gathered(
    *autoscalings: Json,
    deployments: tuple[Json, ...] = (CHAT,),
    others: tuple[Json, ...] = (),
    terms: PlanningTerms | None = None,
    report_age: ReportAge = never_asked,
    policies: Policies = POLICIES,
    **world: object,
) -> GatherResult:
    """Return the snapshot gathered from a small world."""
    parts: Json = {
        "pods": (),
        "nodes": (NODE,),
        "autoscalers": (placed(autoscaler("chat", least=1, most=7)),),
    }
    named = {key_of(item): item for item in (*deployments, *others)}
    seen = World(autoscalings=autoscalings, targets=named, **(parts | world))
    return gather(
        seen,
        claims_in(seen),
        policies=policies,
        report_age=report_age,
        now_seconds=NOW_SECONDS,
        may_scale_to_zero=bool(terms),
        idleness=Idleness(last_seconds={("ns", "meta/llama-3.1-8b"): NOW_SECONDS - 40}),
        terms=terms or PlanningTerms(),
    )
