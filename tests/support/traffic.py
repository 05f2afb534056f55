"""ModelServers, ModelRoutes, InferencePools, InferenceObjectives, and pods that they lead to."""

from __future__ import annotations

from typing import Any

from apiserver.schema.json import Json

NETWORKING = "networking.volcano.sh/v1alpha1"


def pod(
    name: str,
    labels: Json,
    *,
    is_ready: bool = True,
    deleting: bool = False,
    phase: str = "Running",
    conditions: list[Json] | None = None,
) -> Json:
    """Return a pod."""
    metadata: Json = {"namespace": "chat", "name": name, "labels": labels}
    if deleting:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    ready = {"type": "Ready", "status": "True" if is_ready else "False"}
    return {"metadata": metadata, "status": {"phase": phase, "conditions": [ready, *(conditions or ())]}}


def server(name: str, selector: Json, **spec: Any) -> Json:
    """Return a ModelServer."""
    return _named(NETWORKING, "ModelServer", name) | {
        "spec": {
            "inferenceEngine": "vLLM",
            "workloadSelector": selector,
            "workloadPort": {"port": 8000},
            **spec,
        }
    }


def rule(*targets: str | tuple[str, int], **members: Any) -> Json:
    """Return a rule of a route, with the weights of its servers."""
    pairs = [(target, 100) if isinstance(target, str) else target for target in targets]
    return {
        "targetModels": [{"modelServerName": name, "weight": weight} for name, weight in pairs],
        **members,
    }


def route(name: str, *rules: Json, created: str = "2026-01-01T00:00:00Z", **spec: Any) -> Json:
    """Return a ModelRoute."""
    value = _named(NETWORKING, "ModelRoute", name) | {"spec": {"modelName": name, "rules": [*rules], **spec}}
    value["metadata"]["creationTimestamp"] = created
    return value


def pool(name: str, labels: Json, *, former: bool = False, namespace: str = "chat") -> Json:
    """Return an InferencePool of the current API group, or of the former one with its other selector."""
    if former:
        value = _named("inference.networking.x-k8s.io/v1alpha2", "InferencePool", name, namespace)
        return value | {"spec": {"selector": labels}}
    value = _named("inference.networking.k8s.io/v1", "InferencePool", name, namespace)
    return value | {
        "spec": {
            "selector": {"matchLabels": labels},
            "targetPorts": [{"number": 8000}],
            "endpointPickerRef": {"name": f"{name}-epp", "port": {"number": 9002}},
        }
    }


def objective(
    name: str,
    pool_name: str = "llama",
    *,
    priority: int | None = 10,
    namespace: str = "chat",
    **reference: Any,
) -> Json:
    """Return an InferenceObjective."""
    spec: Json = {"poolRef": {"name": pool_name, **reference}}
    if priority is not None:
        spec["priority"] = priority
    value = _named("inference.networking.x-k8s.io/v1alpha2", "InferenceObjective", name, namespace)
    return value | {"spec": spec}


def _named(api_version: str, kind: str, name: str, namespace: str = "chat") -> Json:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"namespace": namespace, "name": name, "uid": f"{kind}-{name}", "generation": 2},
    }
