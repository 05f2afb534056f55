"""Models, and what routes requests to them, to the shapes of later releases, and back.

A Model becomes a ModelBooster of Kthena 1.0, which has one backend of fixed replicas. ModelRoutes,
ModelServers and InferenceObjectives move to other groups.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, TypeAlias

from apiserver.kinds.inference.inferenceobjective import FORMER_POOL_GROUP
from apiserver.kinds.kthena.groups import NETWORKING, REGISTRY, SERVING
from apiserver.kinds.kthena.modelbackend import DEFAULT_ROUTE_WEIGHT
from apiserver.schema.json import Json, as_list, as_object, without
from controller.commands.migrate.objects import (
    MigrationNote,
    MigrationResult,
    loss,
    own_metadata,
    refusal,
    remark,
    without_migration,
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

_OUR_ROUTING: Final = f"{NETWORKING}/v1alpha1"
_RELEASED_ROUTING: Final = f"{SERVING}/v1alpha1"
_ROUTED: Final = ("ModelRoute", "ModelServer")
_OBJECTIVE: Final = "InferenceObjective"
_OUR_OBJECTIVE: Final = f"{FORMER_POOL_GROUP}/v1alpha2"
_LATER_GROUP: Final = "llm-d.ai"
_LATER_OBJECTIVES: Final = (f"{_LATER_GROUP}/v1alpha2", f"{_LATER_GROUP}/v1")
_MOST: Final = 2**31 - 1
_LEAST: Final = -(2**31)


def _boost(model: Json) -> MigrationResult:
    spec = model["spec"]
    backend, *others = spec["backends"]
    path = ("spec", "backends", 0)
    if backend["type"] not in _TYPES:
        why = f"{_RELEASED[1]} supports the types {' and '.join(_TYPES)} only"
        return without_migration(model, why, *path, "type")
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
    return MigrationResult(objects=(_object(model, _RELEASED, body),), notes=tuple(notes))


def _object(value: Json, head: tuple[str, str], spec: Json) -> Json:
    rest = without(value, ["status"])
    return rest | {"apiVersion": head[0], "kind": head[1], "metadata": own_metadata(value), "spec": spec}


def _loss(remedy: str, *path: str | int) -> MigrationNote:
    return loss(f"{_RELEASED[1]} of {RELEASED_GROUP}", remedy, *path)


def _model(booster: Json) -> MigrationResult:
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
    return MigrationResult(objects=(_object(booster, _OURS, body),), notes=tuple(notes))


def _rename(value: Json, api_version: str) -> Json:
    return without(value, ["status"]) | {"apiVersion": api_version, "metadata": own_metadata(value)}


def _release_route(value: Json) -> MigrationResult:
    spec, notes = value["spec"], []
    for name, amount in as_object(spec.get("rateLimit")).items():
        if isinstance(amount, int) and amount > _MOST:
            why = f"the definition of Kthena allows {_MOST} at most"
            return without_migration(value, why, "spec", "rateLimit", name)
    if value["kind"] == "ModelServer" and "workloadPort" not in spec:
        notes.append(remark("workloadPort is required after Kthena 1.0: set it", "spec"))
    return MigrationResult(objects=(_rename(value, _RELEASED_ROUTING),), notes=tuple(notes))


def _later_objective(value: Json) -> MigrationResult:
    if not _LEAST <= as_object(value.get("spec")).get("priority", 0) <= _MOST:
        return without_migration(value, "a priority has 32 bits there", "spec", "priority")
    return MigrationResult(objects=(_rename(value, _LATER_OBJECTIVES[0]),))


def _our_route(value: Json) -> MigrationResult:
    if refused := refusal(value):
        return refused
    spec = value["spec"]
    for place, rule in enumerate(spec.get("rules", ())):
        for rank, target in enumerate(rule["targetModels"]):
            if "externalModelProviderName" in target:
                path = ("spec", "rules", place, "targetModels", rank, "externalModelProviderName")
                why = f"no ModelRoute of {NETWORKING} has such targets: leave it to Kthena's router"
                return without_migration(value, why, *path)
    notes: list[MigrationNote] = []
    if "parentRefs" in spec:
        remedy = "the annotation stowplan.dev/parent-refs names Gateways"
        notes.append(loss(f"ModelRoute of {NETWORKING}", remedy, "spec", "parentRefs"))
    result = _rename(value, _OUR_ROUTING) | {"spec": without(spec, ["parentRefs"])}
    return MigrationResult(objects=(result,), notes=tuple(notes))


def _our_objective(value: Json) -> MigrationResult:
    spec = as_object(value.get("spec"))
    pools = [*([spec["poolRef"]] if "poolRef" in spec else []), *as_list(spec.get("poolRefs"))]
    place = f"{_OBJECTIVE} of {FORMER_POOL_GROUP}"
    if not pools and spec:
        return without_migration(value, f"{place} names one pool by its poolRef: name it", "spec")
    notes = [
        loss(place, "an objective has one pool: deploy one for each", "spec", "poolRefs")
        for _ in pools[1:2]
        if pools[1] != pools[0] or pools[2:]
    ]
    if "poolSelector" in spec:
        notes.append(loss(place, "an objective has one pool", "spec", "poolSelector"))
    result = _rename(value, _OUR_OBJECTIVE)
    if spec:
        result["spec"] = without(spec, ["poolRefs", "poolSelector"]) | {"poolRef": pools[0]}
    return MigrationResult(objects=(result,), notes=tuple(notes))


_Changes: TypeAlias = Mapping[tuple[str, str], Callable[[Json], MigrationResult]]

_TO_RELEASED: Final[_Changes] = {
    _OURS: _boost,
    **{(_OUR_ROUTING, kind): _release_route for kind in _ROUTED},
    (_OUR_OBJECTIVE, _OBJECTIVE): _later_objective,
}
_TO_OURS: Final[_Changes] = {
    _RELEASED: _model,
    **{(_RELEASED_ROUTING, kind): _our_route for kind in _ROUTED},
    **{(version, _OBJECTIVE): _our_objective for version in _LATER_OBJECTIVES},
}


def release_models(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each Model, route, server and objective of ours, by position."""
    for place, value in objects.items():
        if change := _TO_RELEASED.get(_head(value)):
            yield place, refusal(value) or change(value)


def restore_models(objects: Mapping[int, Json]) -> Iterator[tuple[int, MigrationResult]]:
    """Yield what becomes of each ModelBooster, route, server and objective of later releases, by position."""
    for place, value in objects.items():
        if change := _TO_OURS.get(_head(value)):
            yield place, change(value)


def _head(value: Json) -> tuple[str, str]:
    return str(value.get("apiVersion")), value["kind"]
