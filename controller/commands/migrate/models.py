"""Models to ModelBoosters of Kthena 1.0, which have one backend of fixed replicas, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.kthena.groups import REGISTRY
from apiserver.kinds.kthena.modelbackend import DEFAULT_ROUTE_WEIGHT
from apiserver.schema.json import Json, as_list, as_object, without
from controller.commands.migrate.objects import (
    Migrated,
    MigrationNote,
    loss,
    own_metadata,
    refusal,
    unchanged,
)
from controller.commands.migrate.policies import RELEASED_GROUP

_OURS: Final = (f"{REGISTRY}/v1alpha1", "Model")
_RELEASED: Final = (f"{RELEASED_GROUP}/v1alpha1", "ModelBooster")
_TYPES: Final = ("vLLM", "vLLMDisaggregated")
_ALONE: Final = "there is only one backend"
_SCALED: Final = "write an AutoscalingPolicy of that group for the ModelServing that it becomes, {serving!r}"
_LOST_OF_SPEC: Final[Mapping[str, str]] = {
    "autoscalingPolicy": _SCALED,
    "costExpansionRatePercent": _ALONE,
}
_LOST_OF_BACKENDS: Final[Mapping[str, str]] = {
    "scalingCost": _ALONE,
    "scaleToZeroGracePeriod": "it is never scaled to zero",
    "routeWeight": _ALONE,
    "loraAdapters": "let the engine load them by its config",
    "autoscalingPolicy": _SCALED,
}
_WITHOUT_EFFECT: Final = {"scalingCost": 0, "routeWeight": DEFAULT_ROUTE_WEIGHT}
_LOST_OF_BOOSTERS: Final[Mapping[str, str]] = {
    "runtimeClassName": "set it by a mutating admission policy",
    "schedulerName": "set it by a mutating admission policy",
}
_PODS: Final = "let the node's admission, such as ExtendedResourceToleration, add them"


def boost_models(objects: Mapping[int, Json]) -> Iterator[tuple[int, Migrated]]:
    """Yield what becomes of each Model, by position: a ModelBooster of its first backend."""
    for place, value in objects.items():
        if (value.get("apiVersion"), value.get("kind")) == _OURS:
            yield place, refusal(value) or _boosted(value)


def _boosted(model: Json) -> Migrated:
    spec = model["spec"]
    backend, *others = spec["backends"]
    path = ("spec", "backends", 0)
    if backend["type"] not in _TYPES:
        why = f"{_RELEASED[1]} supports the types {' and '.join(_TYPES)} only"
        return unchanged(model, why, *path, "type")
    serving = f"{model['metadata']['name']}-{backend['name']}"
    notes = [
        _loss(remedy.format(serving=serving), "spec", name)
        for name, remedy in _LOST_OF_SPEC.items()
        if name in spec
    ]
    notes += [
        _loss(f"write a {_RELEASED[1]} of its own for {other['name']!r}", "spec", "backends", place)
        for place, other in enumerate(others, start=1)
    ]
    notes += [
        _loss(remedy.format(serving=serving), *path, name)
        for name, remedy in _LOST_OF_BACKENDS.items()
        if name in backend and backend[name] != _WITHOUT_EFFECT.get(name)
    ]
    least, most = backend["minReplicas"], backend["maxReplicas"]
    if least != most:
        remedy = f"it always has as many replicas as written, {max(least, 1)}"
        notes.append(_loss(remedy, *path, "maxReplicas"))
    kept = without(backend, [*_LOST_OF_BACKENDS, "minReplicas", "maxReplicas"])
    body = without(spec, [*_LOST_OF_SPEC, "backends"])
    body["backend"] = kept | {"replicas": max(least, 1)}
    return Migrated(objects=(_object(model, _RELEASED, body),), notes=tuple(notes))


def _object(value: Json, head: tuple[str, str], spec: Json) -> Json:
    rest = without(value, ["status"])
    return rest | {"apiVersion": head[0], "kind": head[1], "metadata": own_metadata(value), "spec": spec}


def _loss(remedy: str, *path: str | int) -> MigrationNote:
    return loss(f"{_RELEASED[1]} of {RELEASED_GROUP}", remedy, *path)


def write_models(objects: Mapping[int, Json]) -> Iterator[tuple[int, Migrated]]:
    """Yield what becomes of each ModelBooster, by position: a Model with one backend of fixed replicas."""
    for place, value in objects.items():
        if (value.get("apiVersion"), value.get("kind")) == _RELEASED:
            yield place, _model(value)


def _model(booster: Json) -> Migrated:
    spec = as_object(booster.get("spec"))
    backend = as_object(spec.get("backend"))
    place, path = f"{_OURS[1]} of {REGISTRY}", ("spec", "backend")
    notes = [
        loss(place, remedy, *path, name) for name, remedy in _LOST_OF_BOOSTERS.items() if backend.get(name)
    ]
    workers = list(map(as_object, as_list(backend.get("workers"))))
    notes += [
        loss(place, _PODS, *path, "workers", rank, "tolerations")
        for rank, worker in enumerate(workers)
        if worker.get("tolerations")
    ]
    replicas = backend.get("replicas", 1)
    if replicas == 0:
        notes.append(loss(place, "it has 1 replica: a Model without a policy is not off", *path, "replicas"))
        replicas = 1
    kept = without(backend, [*_LOST_OF_BOOSTERS, "replicas", "workers"])
    kept |= {"minReplicas": replicas, "maxReplicas": replicas}
    kept["workers"] = [without(worker, ["tolerations"]) for worker in workers]
    body = without(spec, ["backend"]) | {"backends": [kept]}
    return Migrated(objects=(_object(booster, _OURS, body),), notes=tuple(notes))
