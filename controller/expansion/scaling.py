"""Scaling of a Model: policies and bindings, and the HorizontalPodAutoscalers that apply them.

A backend's policy scales each of its parts separately, by the metrics of that part. A model's policy
distributes one load over all backends by cost.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

from apiserver.kinds.annotations import PREFIX, ROUTE_ORDERS, SCALE_TO_ZERO_GRACE
from apiserver.kinds.authorship import WRITTEN_BY
from apiserver.kinds.autoscalers import BOUND_METRIC
from apiserver.kinds.kthena.autoscalingpolicybinding import MOST_TARGET_REPLICAS
from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.schema.durations import seconds
from apiserver.schema.json import Json
from controller.expansion.parts import BACKEND_LABEL, MODEL_LABEL, Part, backend_name
from controller.expansion.workloads import metadata, reference

_API_VERSION: Final = f"{REGISTRY}/v1alpha1"

_MOST_COST: Final = 2**31 - 1


def is_scaled(part: Part) -> bool:
    """Tell whether a policy controls the replicas of a part."""
    return "autoscalingPolicy" in part.backend or (
        "autoscalingPolicy" in part.model["spec"] and not part.is_disaggregated
    )


def backend_scaling(parts: Sequence[Part]) -> Iterator[Json]:
    """Yield the policy of one backend and the bindings of its parts; nothing if it has no policy."""
    first = parts[0]
    if "autoscalingPolicy" not in first.backend:
        return
    name = backend_name(first.model, first.backend)
    labels = {label: first.labels[label] for label in (MODEL_LABEL, BACKEND_LABEL)}
    yield _policy(first.model, name, first.backend["autoscalingPolicy"], labels)
    for part in parts:
        low, high = bounds(part)
        scaling = {"target": _target(part), "minReplicas": low, "maxReplicas": high}
        body: Json = {"policyRef": {"name": name}, "scalingConfiguration": scaling}
        yield _binding(part.model, part.name, body, dict(part.labels))


def model_scaling(model: Json, parts: Sequence[Part]) -> Iterator[Json]:
    """Yield the policy of a model and the binding of all its parts; nothing if it has no policy."""
    spec, name = model["spec"], str(model["metadata"]["name"])
    if "autoscalingPolicy" not in spec or not parts:
        return
    labels = {MODEL_LABEL: name}
    # Costs are per replica of a backend, but engines are scaled. Only the ratios of the costs matter.
    whole = math.lcm(*(part.workers for part in parts))
    params: list[Json] = []
    for part in parts:
        low, high = bounds(part)
        cost = min(int(part.backend.get("scalingCost", 0)) * whole // part.workers, _MOST_COST)
        params.append({"target": _target(part), "cost": cost, "minReplicas": low, "maxReplicas": high})
    rate = spec.get("costExpansionRatePercent", 200)
    body: Json = {
        "policyRef": {"name": name},
        "optimizerConfiguration": {"params": params, "costExpansionRatePercent": rate},
    }
    yield _policy(model, name, spec["autoscalingPolicy"], labels)
    binding = _binding(model, name, body, labels)
    if any(item["minReplicas"] == 0 for item in params):
        binding["metadata"].setdefault("annotations", {}).setdefault(SCALE_TO_ZERO_GRACE, _grace(parts))
    yield binding


def autoscaler(part: Part, *, has_tolerance: bool) -> Json:
    """Return the HorizontalPodAutoscaler that scales a part to the replicas that its policy decides."""
    low, high = bounds(part)
    target = reference(part)
    labels = {"target_kind": target["kind"], "target_name": target["name"]}
    metric = {"name": BOUND_METRIC, "selector": {"matchLabels": labels}}
    # The policy has its own tolerance, windows and limits. Those of the autoscaler would come on top.
    at_once: Json = {"stabilizationWindowSeconds": 0} | ({"tolerance": "0"} if has_tolerance else {})
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": metadata(part.model, part.name, part.labels),
        "spec": {
            "scaleTargetRef": target,
            "minReplicas": low,
            "maxReplicas": high,
            "metrics": [
                {
                    "type": "External",
                    "external": {"metric": metric, "target": {"type": "AverageValue", "averageValue": "1"}},
                }
            ],
            "behavior": {"scaleUp": at_once, "scaleDown": at_once},
        },
    }


def bounds(part: Part) -> tuple[int, int]:
    """Return the minimum and maximum number of engines of a part, within the limits of a binding."""
    backend = part.backend
    low, high = (int(backend[name]) * part.workers for name in ("minReplicas", "maxReplicas"))
    return min(low, MOST_TARGET_REPLICAS), min(high, MOST_TARGET_REPLICAS)


def _grace(parts: Sequence[Part]) -> str:
    """Return the longest grace period of some parts, as any of them may have the last replica."""
    graces = {str(part.backend.get("scaleToZeroGracePeriod", "30s")) for part in parts}
    return max(sorted(graces), key=lambda text: seconds(text) or 0.0)


def _policy(model: Json, name: str, spec: Json, labels: Json) -> Json:
    return {
        "apiVersion": _API_VERSION,
        "kind": "AutoscalingPolicy",
        "metadata": metadata(model, name, labels),
        "spec": spec,
    }


def _binding(model: Json, name: str, spec: Json, labels: Json) -> Json:
    """Return a binding. It inherits the annotations with instructions of the Model."""
    binding: Json = {
        "apiVersion": _API_VERSION,
        "kind": "AutoscalingPolicyBinding",
        "metadata": metadata(model, name, labels),
        "spec": spec,
    }
    orders = {
        key: text
        for key, text in sorted((model["metadata"].get("annotations") or {}).items())
        if key.startswith(PREFIX) and key not in (WRITTEN_BY, *ROUTE_ORDERS)
    }
    if orders:
        binding["metadata"]["annotations"] = {**binding["metadata"].get("annotations", {}), **orders}
    return binding


def _target(part: Part) -> Json:
    return {"targetRef": reference(part), "metricEndpoint": {"uri": part.metrics_path, "port": part.port}}
