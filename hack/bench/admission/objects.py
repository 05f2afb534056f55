"""The reviewed objects: variants of the large Model, and a small VariantAutoscaling."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, JsonValue
from hack.calling.reviews import model, received_object


def spoilt(value: Json) -> Json:
    """Return a copy of a Model with three errors: a violated pattern, a bound, and two conflicting fields."""
    spoilt = copy.deepcopy(value)
    backends = spoilt["spec"]["backends"]
    backends[0]["modelURI"] = "https://huggingface.co/meta-llama/Llama-3.1-70B-Instruct"
    backends[1]["routeWeight"] = 130
    backends[2]["minReplicas"] = 5
    return spoilt


def unlike_models(count: int) -> Iterator[Json]:
    """Yield Models of one shape, no two of which share a worker, a backend or a policy."""
    for number in range(count):
        value = model()
        _vary(value["spec"], number)
        yield value


def _vary(value: JsonValue, number: int) -> None:
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        if key in _VARIED:
            value[key] = _VARIED[key](item, number)
        elif isinstance(item, dict | list):
            _vary(item, number)


_VARIED: Final[Mapping[str | int, Callable[[JsonValue, int], JsonValue]]] = {
    "image": lambda text, number: f"{text}-build.{number}",
    "memory": lambda _, number: f"{300 + number}Gi",
    "values": lambda items, number: [*items, f"zone-{number}"],
    "value": lambda text, number: f"{text}{number}" if text.isdigit() else f"{text}/{number}",
    "artifactURL": lambda text, number: f"{text}/{number}",
    "targetValue": lambda _, number: str(1 + number),
    "modelURI": lambda text, number: f"{text}-{number}",
    "app.kubernetes.io/name": lambda text, number: f"{text}-{number}",
}
"""Members that differ between the Models, and their values by current value and number."""


def variant() -> Json:
    """Return a VariantAutoscaling of the current shape, without `variantCost`."""
    manifest: Json = {
        "apiVersion": "llmd.ai/v1alpha2",
        "kind": "VariantAutoscaling",
        "metadata": {
            "name": "llama-8b-l40s",
            "namespace": "inference-production",
            "labels": {"inference.optimization/acceleratorName": "L40S"},
        },
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "llama-8b-l40s"},
            "modelID": "meta/llama-3.1-8b",
        },
    }
    return received_object(manifest, uid="7c1f3f0e-52bb-4a6e-8f1b-3f4f0a9d8e21", owner="kubectl")


def stored_object(value: Json) -> Json:
    """Return an object as read from storage: with defaults and a resource version."""
    known = find_version(value["apiVersion"], value["kind"])
    kept = with_defaults(known[1], value) if known else copy.deepcopy(value)
    kept["metadata"] |= {"generation": 1, "resourceVersion": "48211907"}
    return kept


def with_other_label(value: Json) -> Json:
    """Return a copy in which only a label is changed."""
    changed = copy.deepcopy(value)
    changed["metadata"]["labels"]["team"] = "platform"
    return changed


def with_new_image(value: Json) -> Json:
    """Return a copy of a Model in which only the image of the first worker is changed."""
    changed = copy.deepcopy(value)
    changed["spec"]["backends"][0]["workers"][0]["image"] = (
        "registry.example.com/inference/vllm-openai:v0.11.0"
    )
    return changed
