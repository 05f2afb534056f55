"""Translation of ModelRoutes for Gateways: creates their objects and reports what cannot be expressed.

It is part of the reconciliation of a ModelRoute (`traffic`), whose status gets the condition.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from typing import Final

from apiserver.cluster.cache import Change, GroupIndex, catch_errors
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import OptionalCache
from apiserver.cluster.resource import (
    CUSTOM_RESOURCE_DEFINITIONS,
    HTTP_ROUTES,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    MODEL_REWRITES,
    MODEL_ROUTES,
    NAMESPACES,
)
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.judgement import errors_of
from apiserver.kinds.registry import find_version
from apiserver.schema.defaulting import with_defaults
from apiserver.schema.json import Json, as_list, as_object
from controller.expansion.parts import MANAGED_BY, Note
from controller.expansion.steps import ChildKey, digest_object, key_of
from controller.gateways.inputs import (
    API_VERSIONS,
    InstalledDefinitions,
    installed_of,
    is_opted_in,
    parent_refs,
    reduce_definition,
)
from controller.gateways.reporting import (
    Finding,
    GatewayCondition,
    GatewayReason,
    RouteContext,
    is_made_for,
    not_translated,
    pools_of,
    steps,
    translation_finding,
)
from controller.gateways.translation import Translation, translate
from controller.models.child_writer import ChildWriter
from controller.models.traffic_caches import TrafficCaches
from controller.traffic.status import targets_of

RESOURCES: Final = (HTTP_ROUTES, INFERENCE_POOLS, INFERENCE_OBJECTIVES, MODEL_REWRITES)
"""Resources of the objects made for ModelRoutes."""

_ASK_AGAIN_SECONDS: Final = 10.0
"""Retry interval in seconds: a new kind's objects become readable shortly after its definition."""

_MOST_DELETED: Final = 100
"""The number of deleted objects in a namespace above which their fingerprints are dropped."""

_OURS: Final = ",".join(f"{name}={text}" for name, text in MANAGED_BY.items())


class GatewayCaches:
    """Caches of the inputs of the translation for Gateways.

    `changed` is called with a namespace and the name of a ModelRoute. An empty name stands for all
    ModelRoutes of the namespace, an empty namespace for all namespaces.
    """

    def __init__(self, cluster: Cluster, changed: Callable[[str, str], None]) -> None:
        self._changed = changed
        self._namespaces = OptionalCache(
            cluster, NAMESPACES, reduce=_annotations, without="annotations of Namespaces"
        )
        self._definitions = {
            name: OptionalCache(
                cluster,
                CUSTOM_RESOURCE_DEFINITIONS,
                reduce=reduce_definition,
                field_selector=f"metadata.name={name}",
                without=f"the definition {name}",
            )
            for name in API_VERSIONS
        }
        self._children = {
            resource.full_name: OptionalCache(
                cluster,
                resource,
                label_selector=_OURS,
                reduce=digest_object,
                without=f"{resource.kind}s",
                ask_again_seconds=_ASK_AGAIN_SECONDS,
            )
            for resource in RESOURCES
        }
        self._served = {name: asyncio.Event() for name in API_VERSIONS}
        self._annotated: dict[str, Json] = {}
        self._made = GroupIndex(lambda item: (str(item["metadata"]["namespace"]), key_of(item)))
        self._namespaces.subscribe(self._namespace_changed)
        for definitions in self._definitions.values():
            definitions.subscribe(self._definition_changed)
        for children in self._children.values():
            children.subscribe(catch_errors(self._child_changed))

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            for cache in (self._namespaces, *self._definitions.values()):
                group.create_task(cache.run())
            for name, children in self._children.items():
                group.create_task(self._run_when_served(name, children))

    async def wait_until_synced(self) -> None:
        """Wait until the served kinds are known and their initial lists complete."""
        for cache in (self._namespaces, *self._definitions.values()):
            await cache.settled.wait()
        for name, served in self._served.items():
            if served.is_set():
                await self._children[name].settled.wait()

    def why_not_current(self) -> str | None:
        """Return which cache is too old to act on, or None."""
        caches = (self._namespaces, *self._definitions.values(), *self._children.values())
        return next(filter(None, (cache.why_lost() for cache in caches)), None)

    def namespace(self, name: str) -> Json | None:
        """Return a Namespace, reduced to its annotations."""
        return self._annotated.get(name)

    def installed_definitions(self) -> InstalledDefinitions:
        """Return which definitions are served by the cluster and readable."""
        readable = [name for name, children in self._children.items() if children.is_readable]
        return installed_of(item for name in readable for item in self._definitions[name].items())

    def children_of(self, namespace: str) -> Mapping[ChildKey, Json]:
        """Return the objects that were made for the ModelRoutes of a namespace, as a copy for threads."""
        return {**self._made.of(namespace)}

    async def _run_when_served(self, name: str, children: OptionalCache) -> None:
        await self._served[name].wait()
        async with asyncio.TaskGroup() as group:
            group.create_task(children.run())
            await children.settled.wait()
            self._changed("", "")

    def _namespace_changed(self, change: Change) -> None:
        name = change.key[1]
        if change.new is None:
            del self._annotated[name]
        elif change.new != self._annotated.get(name):
            self._annotated[name] = change.new
            self._changed(name, "")

    def _definition_changed(self, change: Change) -> None:
        """Report all routes as changed: a kind may be served now, or have new fields."""
        if change.new is not None:
            self._served[change.key[1]].set()
        self._changed("", "")

    def _child_changed(self, change: Change) -> None:
        self._made.take(change)
        for item in filter(None, (change.old, change.new)):
            for owner in item["metadata"].get("ownerReferences") or []:
                if owner["kind"] == MODEL_ROUTES.kind:
                    self._changed(change.key[0], owner["name"])


def _annotations(namespace: Json) -> Json:
    """Return the reduced Namespace. Namespaces that are equal in this form need no notification."""
    metadata = namespace["metadata"]
    kept = {"name": metadata["name"], "annotations": metadata.get("annotations") or {}}
    return {"metadata": kept}


class GatewayTranslator:
    """Translates the routes that opt in. Keeps fingerprints of the objects that it applied."""

    def __init__(self, writer: StatusWriter, world: GatewayCaches, routes: TrafficCaches) -> None:
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
                translate,
                value,
                around.servers,
                parents,
                self._world.installed_definitions(),
                _without(route),
            )
            children = await self._children.complete(
                around.children, route["metadata"]["namespace"], _child_keys(translation)
            )
            around = replace(around, children=children)
        following = await asyncio.to_thread(steps, route, translation, around)
        written = await self._children.act(following, around.children, around.applied)
        if translation is None and not written.refused:
            return {}, written.is_over
        requested = _child_keys(translation) if translation else ()
        existing = {key: item for key, item in written.children.items() if key in requested}
        foreign = {key for key, item in existing.items() if not is_made_for(item, route)}
        finding = translation_finding(
            notes=translation.notes if translation else (),
            children=[item for key, item in existing.items() if key not in foreign],
            foreign=foreign,
            refused=written.refused,
        )
        return {GatewayCondition.TRANSLATED: finding}, written.is_over and not foreign

    def _why_not(self, faults: Sequence[str], unread: Sequence[Note]) -> Finding | None:
        """Return why a route cannot be translated at all, or None."""
        if faults:
            return not_translated(GatewayReason.INVALID, faults)
        if missing := self._world.installed_definitions().missing:
            texts = [
                f"{name} is not served by this cluster, or the controller is not allowed to read it"
                for name in missing
            ]
            return not_translated(GatewayReason.NOT_INSTALLED, texts)
        if unread:
            return not_translated(GatewayReason.NOT_UNDERSTOOD, [*map(str, unread)])
        return None

    async def _surroundings(self, route: Json, namespace: Json | None) -> RouteContext:
        name, group = route["metadata"]["namespace"], str(route["apiVersion"]).partition("/")[0]
        children = self._world.children_of(name)
        known = self._routes.servers(name, group)
        related = {
            server: known[server]
            for server in pools_of(route, children).union(targets_of(route))
            if server in known
        }
        judged_servers = await asyncio.to_thread(
            lambda: {server: _validate(value) for server, value in related.items()}
        )
        applied = self._applied.setdefault(name, {})
        if len(applied) > 2 * len(children) + _MOST_DELETED:
            for key in applied.keys() - children.keys():
                del applied[key]
        return RouteContext(
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


def _child_keys(translation: Translation) -> frozenset[ChildKey]:
    pools = {ChildKey(INFERENCE_POOLS.kind, name) for name in translation.pools}
    return frozenset(pools | {key_of(item) for item in translation.objects})


def _without(route: Json) -> frozenset[str]:
    """Return the ModelServers of a route that have no endpoint, according to its status."""
    targets = as_list(as_object(route.get("status")).get("targets"))
    endpoint_counts = {
        str(item.get("modelServerName")): item.get("readyEndpoints") for item in map(as_object, targets)
    }
    return frozenset(name for name, ready in endpoint_counts.items() if not ready)


def _validate(value: Json) -> tuple[Json, list[str]]:
    """Return an object with its defaults, and its errors: it may have been stored before our validation."""
    served = find_version(value["apiVersion"], value["kind"])
    if served is None:
        raise LookupError(value["kind"])
    spec = {name: item for name, item in value.items() if name != "status"}
    if faults := errors_of(*served, spec):
        return value, [str(error) for error in faults]
    return with_defaults(served[1], spec), []
