"""ModelRoutes, ModelServers and InferenceObjectives to the groups of later releases, and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from apiserver.kinds.inference.inferenceobjective import FORMER_POOL_GROUP
from apiserver.kinds.kthena.groups import NETWORKING, SERVING
from apiserver.schema.json import Json, as_list, as_object, without
from controller.commands.migrate.objects import (
    Migrated,
    MigrationNote,
    loss,
    own_metadata,
    refusal,
    remark,
    unchanged,
)

_ROUTING: Final = (f"{NETWORKING}/v1alpha1", f"{SERVING}/v1alpha1")
_KINDS: Final = ("ModelRoute", "ModelServer")
_OBJECTIVE: Final = "InferenceObjective"
_OUR_OBJECTIVE: Final = f"{FORMER_POOL_GROUP}/v1alpha2"
_LATER_GROUP: Final = "llm-d.ai"
_LATER_OBJECTIVES: Final = (f"{_LATER_GROUP}/v1alpha2", f"{_LATER_GROUP}/v1")
_MOST: Final = 2**31 - 1
_LEAST: Final = -(2**31)


def release_routing(objects: Mapping[int, Json]) -> Iterator[tuple[int, Migrated]]:
    """Yield what becomes of each route, server and objective of ours, by position."""
    for place, value in objects.items():
        is_route = value.get("apiVersion") == _ROUTING[0] and value.get("kind") in _KINDS
        if is_route or (value.get("apiVersion"), value.get("kind")) == (_OUR_OBJECTIVE, _OBJECTIVE):
            yield place, refusal(value) or (_released_route(value) if is_route else _later_objective(value))


def _renamed(value: Json, api_version: str) -> Json:
    return without(value, ["status"]) | {"apiVersion": api_version, "metadata": own_metadata(value)}


def _released_route(value: Json) -> Migrated:
    spec, notes = value["spec"], []
    for name, amount in as_object(spec.get("rateLimit")).items():
        if isinstance(amount, int) and amount > _MOST:
            why = f"the definition of Kthena allows {_MOST} at most"
            return unchanged(value, why, "spec", "rateLimit", name)
    if value["kind"] == "ModelServer" and "workloadPort" not in spec:
        notes.append(remark("workloadPort is required after Kthena 1.0: set it", "spec"))
    return Migrated(objects=(_renamed(value, _ROUTING[1]),), notes=tuple(notes))


def _later_objective(value: Json) -> Migrated:
    if not _LEAST <= as_object(value.get("spec")).get("priority", 0) <= _MOST:
        return unchanged(value, "a priority has 32 bits there", "spec", "priority")
    return Migrated(objects=(_renamed(value, _LATER_OBJECTIVES[0]),))


def restore_routing(objects: Mapping[int, Json]) -> Iterator[tuple[int, Migrated]]:
    """Yield what becomes of each route, server and objective of later releases, by position."""
    for place, value in objects.items():
        if value.get("apiVersion") == _ROUTING[1] and value.get("kind") in _KINDS:
            yield place, refusal(value) or _our_route(value)
        elif value.get("apiVersion") in _LATER_OBJECTIVES and value.get("kind") == _OBJECTIVE:
            yield place, _our_objective(value)


def _our_route(value: Json) -> Migrated:
    spec = value["spec"]
    for place, rule in enumerate(spec.get("rules", ())):
        for rank, target in enumerate(rule["targetModels"]):
            if "externalModelProviderName" in target:
                path = ("spec", "rules", place, "targetModels", rank, "externalModelProviderName")
                why = f"no ModelRoute of {NETWORKING} has such targets: leave it to Kthena's router"
                return unchanged(value, why, *path)
    notes: list[MigrationNote] = []
    if "parentRefs" in spec:
        remedy = "the annotation stowplan.dev/parent-refs names Gateways"
        notes.append(loss(f"ModelRoute of {NETWORKING}", remedy, "spec", "parentRefs"))
    result = _renamed(value, _ROUTING[0]) | {"spec": without(spec, ["parentRefs"])}
    return Migrated(objects=(result,), notes=tuple(notes))


def _our_objective(value: Json) -> Migrated:
    spec = as_object(value.get("spec"))
    pools = [*([spec["poolRef"]] if "poolRef" in spec else []), *as_list(spec.get("poolRefs"))]
    place = f"{_OBJECTIVE} of {FORMER_POOL_GROUP}"
    if not pools and spec:
        return unchanged(value, f"{place} names one pool by its poolRef: name it", "spec")
    notes = [
        loss(place, "an objective has one pool: deploy one for each", "spec", "poolRefs")
        for _ in pools[1:2]
        if pools[1] != pools[0] or pools[2:]
    ]
    if "poolSelector" in spec:
        notes.append(loss(place, "an objective has one pool", "spec", "poolSelector"))
    result = _renamed(value, _OUR_OBJECTIVE)
    if spec:
        result["spec"] = without(spec, ["poolRefs", "poolSelector"]) | {"poolRef": pools[0]}
    return Migrated(objects=(result,), notes=tuple(notes))
