"""VariantAutoscalings of each released shape, as the API server sends them: 0.7 to 1.5 KB of JSON.

They have a uid, a creation time and managed fields, and some a status. All objects of a list differ.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from apiserver.kinds.llmd.conversion import HUB, SPOKE
from apiserver.kinds.llmd.identity import ACCELERATOR_LABEL
from apiserver.schema.json import Json
from hack.calling.reviews import CREATED, managed_fields, owned_fields

NAMESPACE: Final = "inference-production"

Make = Callable[[int], Json]
"""Returns the object with a number."""


def current(number: int) -> Json:
    """Return an object of the current shape in the hub version; the other version has all of its fields."""
    spec = _current_spec(number)
    return _received_variant(HUB, f"llama-8b-l40s-{number}", spec, number, status=_status("L40S", number))


def decided_object(number: int) -> Json:
    """Return an object of the current shape in the hub version, with a decision, which the other lacks."""
    decision = {
        "reason": "ScaleUp",
        "message": f"llama-8b-l40s-{number} goes from 4 to 5 replicas: 41 requests/s now, up to 48 in the "
        "140 s that a replica needs to start, 78 % of 5 x 12; one serves 12 within ITL 80 ms",
        "demand": {
            "requestsPerSecond": "41",
            "upperRequestsPerSecond": "48",
            "startSeconds": 140,
            "avgInputTokens": "1155",
            "avgOutputTokens": "211",
        },
        "requiredRequestsPerSecond": "56.47",
        "capacityPerReplica": "12.3",
        "capacityLimit": "ITL 80 ms",
        "capacitySource": "Learned",
        "unconstrainedReplicas": 5,
        "grantedReplicas": 5,
        "signal": "Fresh",
        "solverStatus": "Optimal",
    }
    status = {"desiredOptimizedAlloc": _desired_allocation("L40S", number), "decision": decision}
    return _received_variant(HUB, f"llama-8b-l40s-{number}", _current_spec(number), number, status=status)


def released_current(number: int) -> Json:
    """Return an object of the current shape in the old version, as its own release stored it."""
    return current(number) | {"apiVersion": SPOKE}


def legacy(number: int) -> Json:
    """Return an object of the legacy shape: no scale target, and an identifier that the hub lacks."""
    model = f"meta/llama-3.1-{8 + number % 3}b"
    spec = {
        "modelID": model,
        "variantID": f"{model}-A100-1",
        "accelerator": "A100",
        "acceleratorCount": 1,
        "sloClassRef": {"name": "service-classes-config", "key": "premium.yaml"},
        "variantProfile": {"perfParms": _parameters(number), "maxBatchSize": 64},
    }
    return _received_variant(SPOKE, f"llama-8b-a100-{number}", spec, number, status=_status("A100", number))


def profiled_object(number: int) -> Json:
    """Return an object of the modelProfile shape with two candidates; its label selects the second."""
    entries = [
        {"acc": name, "accCount": count, "perfParms": _parameters(number), "maxBatchSize": batch}
        for name, count, batch in (("A100", 1, 64), ("H100", 2, 128))
    ]
    spec = {
        "modelID": f"meta/llama-3.1-{8 + number % 3}b",
        "sloClassRef": {"name": "service-classes-config", "key": "premium.yaml"},
        "modelProfile": {"accelerators": entries},
    }
    return _received_variant(SPOKE, f"llama-8b-{number}", spec, number, labels={ACCELERATOR_LABEL: "H100"})


SHAPES: Final[Mapping[str, Make]] = {
    "current": current,
    "current with decision": decided_object,
    "current as released": released_current,
    "legacy": legacy,
    "modelProfile": profiled_object,
}
"""Every shape by name, in the version in which it was written."""


OLD: Final = (legacy, profiled_object, released_current)
"""Shapes that an earlier release stored, in the old version."""


def mixed_objects(makes: tuple[Make, ...], count: int) -> list[Json]:
    """Return `count` objects, cycling through the shapes."""
    return [makes[number % len(makes)](number) for number in range(count)]


def collection(version: str) -> str:
    """Return the path on the API server of all objects in a version."""
    return f"/apis/{version}/namespaces/{NAMESPACE}/variantautoscalings"


def _current_spec(number: int) -> Json:
    return {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": f"llama-8b-l40s-{number}"},
        "modelID": "meta/llama-3.1-8b",
        "variantCost": f"{10 + number % 90}.50",
    }


def _parameters(number: int) -> Json:
    return {
        "decodeParms": {"alpha": f"20.{number % 100}", "beta": "0.41"},
        "prefillParms": {"gamma": "5.2", "delta": "0.10"},
    }


def _desired_allocation(accelerator: str, number: int) -> Json:
    return {"lastRunTime": CREATED, "accelerator": accelerator, "numReplicas": 1 + number % 4}


def _status(accelerator: str, number: int) -> Json:
    condition = {
        "type": "OptimizationReady",
        "status": "True",
        "reason": "Optimized",
        "message": "the last decision was taken anew",
        "lastTransitionTime": CREATED,
    }
    return {
        "desiredOptimizedAlloc": _desired_allocation(accelerator, number),
        "actuation": {"applied": True},
        "conditions": [condition],
    }


def _received_variant(
    version: str,
    name: str,
    spec: Json,
    number: int,
    *,
    status: Json | None = None,
    labels: Json | None = None,
) -> Json:
    metadata: Json = {
        "name": name,
        "namespace": NAMESPACE,
        "uid": f"7c1f3f0e-52bb-4a6e-8f1b-{number:012x}",
        "creationTimestamp": CREATED,
        "generation": 1,
    }
    if labels:
        metadata["labels"] = labels
    owned = {"spec": dict.fromkeys(spec, "")}
    metadata["managedFields"] = [managed_fields(owned_fields(owned), by="kubectl", version=version)]
    value = {"apiVersion": version, "kind": "VariantAutoscaling", "metadata": metadata, "spec": spec}
    return value if status is None else value | {"status": status}
