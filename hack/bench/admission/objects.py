"""The objects under review: a Model of 8 KB, a spoilt one, and a small VariantAutoscaling.

As the API server hands them on: with uid, time of creation and the managed fields of two managers.
"""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import yaml

from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import defaulted
from apiserver.schema.json import Json, JsonValue

_MODEL: Final = Path(__file__).with_name("model.yaml")
_CREATED: Final = "2025-11-03T09:12:44Z"
_MAP_LISTS: Final = frozenset({"backends", "env"})
"""Lists whose items the server tells apart by name; it tracks all others as a whole."""


def model() -> Json:
    """Return the Model as it is created; the members that have a default are absent."""
    return _received(
        copy.deepcopy(_written()), uid="0d3f8a52-6b1e-4f0c-9c57-7f2a4be1d3a9", owner="argocd-controller"
    )


@functools.cache
def _written() -> Json:
    manifest: Json = yaml.safe_load(_MODEL.read_text(encoding="utf-8"))
    return manifest


def spoilt_model() -> Json:
    """Return the Model with three mistakes of three sorts: a pattern, a bound, and two fields at odds."""
    spoilt = model()
    backends = spoilt["spec"]["backends"]
    backends[0]["modelURI"] = "https://huggingface.co/meta-llama/Llama-3.1-70B-Instruct"
    backends[1]["routeWeight"] = 130
    backends[2]["minReplicas"] = 5
    return spoilt


SPOILT_FIELDS: Final = (
    "spec.backends[0].modelURI",
    "spec.backends[1].routeWeight",
    "spec.backends[2].minReplicas",
)
"""Where the spoilt Model is wrong."""


def unlike_models(count: int) -> Iterator[Json]:
    """Yield so many Models of one shape of which no two have a worker, a backend or a policy in common."""
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
"""Members that differ, and how: texts that somebody has to look at."""


def variant() -> Json:
    """Return a VariantAutoscaling of the current shape, without its cost."""
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
    return _received(manifest, uid="7c1f3f0e-52bb-4a6e-8f1b-3f4f0a9d8e21", owner="kubectl")


def stored(value: Json) -> Json:
    """Return an object as it comes back from storage: its defaults filled in, with a resource version."""
    found = find_version(value["apiVersion"], value["kind"])
    kept = defaulted(found[1], value) if found else copy.deepcopy(value)
    kept["metadata"] |= {"generation": 1, "resourceVersion": "48211907"}
    return kept


def relabelled(value: Json) -> Json:
    """Return a copy whose metadata somebody touched, and nothing else."""
    changed = copy.deepcopy(value)
    changed["metadata"]["labels"]["team"] = "platform"
    return changed


def with_new_image(value: Json) -> Json:
    """Return a copy whose first worker gets another image, and nothing else."""
    changed = copy.deepcopy(value)
    changed["spec"]["backends"][0]["workers"][0]["image"] = (
        "registry.example.com/inference/vllm-openai:v0.11.0"
    )
    return changed


def rewritten(value: Json) -> Json:
    """Return a copy with one change in its spec, whichever of the two kinds it is."""
    if value["kind"] == "Model":
        return with_new_image(value)
    changed = copy.deepcopy(value)
    changed["spec"]["variantCost"] = "12.5"
    return changed


def _received(manifest: Json, *, uid: str, owner: str) -> Json:
    fields = owned_fields({key: manifest[key] for key in ("spec",)} | {"metadata": _owned_metadata(manifest)})
    metadata = manifest["metadata"] | {
        "uid": uid,
        "creationTimestamp": _CREATED,
        "generation": 1,
        "managedFields": [
            _managed(manifest, owner, fields),
            _managed(manifest, "tier-labeller", {"f:metadata": {"f:labels": {"f:tier": {}}}}),
        ],
    }
    return manifest | {"metadata": metadata}


def _owned_metadata(manifest: Json) -> Json:
    return {
        key: manifest["metadata"][key] for key in ("labels", "annotations") if key in manifest["metadata"]
    }


def _managed(manifest: Json, manager: str, fields: Json) -> Json:
    return {
        "manager": manager,
        "operation": "Apply",
        "apiVersion": manifest["apiVersion"],
        "time": _CREATED,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }


def owned_fields(value: Json) -> Json:
    """Return the fields that a manager owns who applied a value (structured-merge-diff's `FieldsV1`)."""
    return {f"f:{key}": _owned(key, item) for key, item in value.items()}


def _owned(key: str, value: JsonValue) -> Json:
    if isinstance(value, dict):
        return owned_fields(value)
    if isinstance(value, list) and key in _MAP_LISTS:
        return {f'k:{{"name":"{item["name"]}"}}': {".": {}} | owned_fields(item) for item in value}
    return {}
