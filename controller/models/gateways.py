"""Translation of a ModelRoute for Gateways: creates its objects and reports what cannot be expressed.

It is part of the reconciliation of a ModelRoute (`reconcilers/traffic.py`), whose status gets the condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final, Protocol

from apiserver.cluster.resource import (
    HTTP_ROUTES,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    MODEL_REWRITES,
)
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, as_list, as_object
from controller.expansion.parts import Note
from controller.expansion.standing import ChildKey, key_of, targets_of
from controller.gateways.annotations import is_opted_in, parent_refs
from controller.gateways.installed import Installed
from controller.gateways.reporting import (
    Finding,
    GatewayCondition,
    GatewayReason,
    Surroundings,
    TranslationResult,
    finding,
    is_made_for,
    not_translated,
    pools_of,
    steps,
)
from controller.gateways.translation import Translation, translate
from controller.models.child_writer import Acted, ChildWriter
from controller.models.traffic import RouteWorld, group_of

RESOURCES: Final = (HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_OBJECTIVES, MODEL_REWRITES)
"""Resources of the objects made for ModelRoutes."""

_MOST_DELETED: Final = 100
"""The number of deleted objects in a namespace above which their fingerprints are dropped."""

TYPES: Final = frozenset(map(str, GatewayCondition))


class GatewayWorld(Protocol):
    """Caches of objects related to Gateways."""

    def namespace(self, name: str) -> Json | None:
        """Return a Namespace, reduced to its annotations."""

    def installed(self) -> Installed:
        """Return which definitions are served by the cluster and readable."""

    def made(self, namespace: str) -> Mapping[ChildKey, Json]:
        """Return the objects that were made for the ModelRoutes of a namespace."""


class GatewayTranslator:
    """Translates the routes that opt in. Keeps fingerprints of the objects that it applied."""

    def __init__(self, writer: StatusWriter, world: GatewayWorld, routes: RouteWorld) -> None:
        self._children = ChildWriter(writer, RESOURCES)
        self._world = world
        self._routes = routes
        self._applied: dict[str, dict[ChildKey, str]] = {}

    async def find(self, route: Json) -> tuple[Mapping[StrEnum, Finding], bool]:
        """Reconcile one route; return its conditions, and whether no retry is needed.

        Raises ClusterError if the API server is unreachable, and NotLeading.
        """
        namespace = self._world.namespace(route["metadata"]["namespace"])
        around = await self._surroundings(route, namespace)
        translation: Translation | None = None
        if is_opted_in(route, namespace):
            value, faults = await asyncio.to_thread(_validate, route)
            parents, unread = parent_refs(route, namespace)
            if prevented := self._why_not(faults, unread):
                # Existing objects stay. No event announces that a kind became readable, so this is retried.
                is_final = prevented[1] is not GatewayReason.NOT_INSTALLED
                return {GatewayCondition.TRANSLATED: prevented}, is_final
            # In a thread, as the lease must be renewed while many conditions are combined.
            translation = await asyncio.to_thread(
                translate, value, around.servers, parents, self._world.installed(), _without(route)
            )
            children = await self._children.complete(
                around.children, route["metadata"]["namespace"], _child_keys(translation)
            )
            around = replace(around, children=children)
        following = await asyncio.to_thread(steps, route, translation, around)
        acted = await self._children.act(following, around.children, around.applied)
        if translation is not None:
            result = _result(route, translation, acted)
        elif acted.refused:
            result = TranslationResult(refused=acted.refused)
        else:
            return {}, acted.is_over
        return {GatewayCondition.TRANSLATED: finding(result)}, acted.is_over and not result.foreign

    def _why_not(self, faults: Sequence[str], unread: Sequence[Note]) -> Finding | None:
        """Return why a route cannot be translated at all, or None."""
        if faults:
            return not_translated(GatewayReason.INVALID, faults)
        if missing := self._world.installed().missing:
            texts = [
                f"{name} is not served by this cluster, or the controller is not allowed to read it"
                for name in missing
            ]
            return not_translated(GatewayReason.NOT_INSTALLED, texts)
        if unread:
            return not_translated(GatewayReason.NOT_UNDERSTOOD, [*map(str, unread)])
        return None

    async def _surroundings(self, route: Json, namespace: Json | None) -> Surroundings:
        name, group = route["metadata"]["namespace"], group_of(route)
        children = self._world.made(name)
        known = self._routes.servers(name, group)
        related = {
            server: known[server]
            for server in targets_of(route) | pools_of(route, children)
            if server in known
        }
        judged_servers = await asyncio.to_thread(_all_judged, related)
        applied = self._applied.setdefault(name, {})
        if len(applied) > 2 * len(children) + _MOST_DELETED:
            for key in applied.keys() - children.keys():
                del applied[key]
        return Surroundings(
            sharing=[
                item
                for item in self._routes.routes(name, group)
                if is_opted_in(item, namespace) and not item["metadata"].get("deletionTimestamp")
            ],
            servers={server: value for server, (value, faults) in judged_servers.items() if not faults},
            invalid=frozenset(server for server, (_, faults) in judged_servers.items() if faults),
            children=children,
            applied=applied,
        )


def _result(route: Json, translation: Translation, acted: Acted) -> TranslationResult:
    asked = _child_keys(translation)
    known = {key: item for key, item in acted.children.items() if key in asked}
    ours = {key: item for key, item in known.items() if is_made_for(item, route)}
    return TranslationResult(
        notes=translation.notes,
        children=[*ours.values()],
        foreign=frozenset(known.keys() - ours.keys()),
        refused=acted.refused,
    )


def _child_keys(translation: Translation) -> frozenset[ChildKey]:
    pools = {ChildKey(INFERENCE_POOLS.kind, name) for name in translation.pools}
    return frozenset(pools | {key_of(item) for item in translation.objects})


def _without(route: Json) -> frozenset[str]:
    """Return the ModelServers of a route that have no endpoint, according to its status."""
    targets = as_list(as_object(route.get("status")).get("targets"))
    named = {str(item.get("modelServerName")): item.get("readyEndpoints") for item in map(as_object, targets)}
    return frozenset(name for name, ready in named.items() if not ready)


def _all_judged(values: Mapping[str, Json]) -> Mapping[str, tuple[Json, list[str]]]:
    return {name: _validate(value) for name, value in values.items()}


def _validate(value: Json) -> tuple[Json, list[str]]:
    """Return an object with its defaults, and its errors: it may have been stored before our validation."""
    served = find_version(value["apiVersion"], value["kind"])
    if served is None:
        raise LookupError(value["kind"])
    spec = {name: item for name, item in value.items() if name != "status"}
    if faults := errors_of(*served, spec):
        return value, [str(error) for error in faults]
    return with_defaults(served[1], spec), []
