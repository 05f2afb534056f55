"""Caches for the statuses of ModelServers, ModelRoutes and InferenceObjectives, with change notification."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, NamedTuple

from apiserver.cluster.cache import Cache, Change, GroupIndex, catch_errors, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import SILENT_SECONDS, OptionalCache
from apiserver.cluster.resource import (
    FORMER_INFERENCE_POOLS,
    INFERENCE_OBJECTIVES,
    INFERENCE_POOLS,
    MODEL_ROUTES,
    MODEL_SERVERS,
    PODS,
    SERVING_MODEL_ROUTES,
    SERVING_MODEL_SERVERS,
    VARIANT_AUTOSCALINGS,
    Resource,
)
from apiserver.kinds.identity import Key, key_of
from apiserver.schema.json import Json
from controller.observe.objectives import pool_labels
from controller.observe.pods import is_ready
from controller.observe.targets import target_key
from controller.projections import Projection
from controller.traffic.endpoints import selectors_of, selects
from controller.traffic.status import PoolWorld, names_of, targets_of

ROUTING: Final[Mapping[str, tuple[Resource, Resource]]] = {
    servers.group: (servers, routes)
    for servers, routes in ((MODEL_SERVERS, MODEL_ROUTES), (SERVING_MODEL_SERVERS, SERVING_MODEL_ROUTES))
}
"""ModelServers and ModelRoutes, by API group."""

RESOURCES: Final[Mapping[str, Resource]] = {
    resource.full_name: resource
    for resource in (*(item for pair in ROUTING.values() for item in pair), INFERENCE_OBJECTIVES)
}
"""The resources whose statuses are reported, by their full name."""

_POOLS: Final = (INFERENCE_POOLS, FORMER_INFERENCE_POOLS)

ASK_AGAIN_SECONDS: Final = 10.0
"""Retry interval in seconds for groups of ModelServers and ModelRoutes that are not served."""


class TrafficKey(NamedTuple):
    """Resource, namespace and name of an object."""

    resource: str
    """Its full name, such as `modelroutes.networking.volcano.sh`."""

    namespace: str
    name: str


def twin_of(key: TrafficKey) -> TrafficKey | None:
    """Return the key of the object of that kind and name in the other routing group, if the kind has one."""
    resource = RESOURCES[key.resource]
    others = (item for pair in ROUTING.values() for item in pair if item != resource)
    twin = next((other for other in others if other.kind == resource.kind), None)
    return None if twin is None else key._replace(resource=twin.full_name)


class TrafficCaches:
    """Caches of the inputs of the statuses; `changed` is called with each object that a change affects."""

    def __init__(self, cluster: Cluster, changed: Callable[[TrafficKey], None]) -> None:
        self._changed = changed
        self._pods = Cache(cluster, PODS, reduce=partial(_pod, Projection()))
        self._optional = {
            **{
                resource: OptionalCache(
                    cluster,
                    resource,
                    reduce=without_managed_fields,
                    without=f"{resource.kind}s of {resource.group}",
                    ask_again_seconds=ASK_AGAIN_SECONDS,
                )
                for pair in ROUTING.values()
                for resource in pair
            },
            INFERENCE_OBJECTIVES: OptionalCache(cluster, INFERENCE_OBJECTIVES, without="InferenceObjectives"),
            **{
                resource: OptionalCache(cluster, resource, without=f"InferencePools of {resource.group}")
                for resource in _POOLS
            },
            VARIANT_AUTOSCALINGS: OptionalCache(
                cluster, VARIANT_AUTOSCALINGS, reduce=_variant, without="VariantAutoscalings"
            ),
        }
        # A scan of all routes at each change of a pod would take quadratic time in total.
        self._routes_to: dict[tuple[str, Key], dict[str, None]] = {}
        """Names of the ModelRoutes that target a ModelServer, by its group and by its namespace and name."""

        self._targets: dict[tuple[str, Key], tuple[str, ...]] = {}

        self._known = {resource: GroupIndex(key_of) for resource in (PODS, *self._optional)}

    async def run(self) -> None:
        """Keep all caches current until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._pods.run())
            for optional in self._optional.values():
                group.create_task(optional.run())

    async def wait_until_synced(self) -> None:
        """Wait until every initial list is complete; then report every object once, and each change."""
        await self._pods.synced.wait()
        for optional in self._optional.values():
            await optional.settled.wait()
        # Kinds that other kinds depend on come first.
        callbacks: Mapping[Resource, Callable[[Change], None]] = {
            PODS: self._pod_changed,
            VARIANT_AUTOSCALINGS: self._variant_changed,
            **dict.fromkeys(_POOLS, self._pool_changed),
            **{servers: partial(self._server_changed, group) for group, (servers, _) in ROUTING.items()},
            **{routes: partial(self._route_changed, group) for group, (_, routes) in ROUTING.items()},
            INFERENCE_OBJECTIVES: self._objective_changed,
        }
        for resource, tell in callbacks.items():
            source = self._pods if resource is PODS else self._optional[resource]
            source.subscribe(self._known[resource].take)
            source.subscribe(catch_errors(tell))

    def why_not_current(self) -> str | None:
        """Return which cache is missing or too old to act on, or None."""
        lost = (cache.why_lost() for cache in self._optional.values())
        needed = self._pods.why_not_current(within_seconds=SILENT_SECONDS)
        return next(filter(None, (needed, *lost)), None)

    def all_changed(self) -> None:
        """Report every ModelServer and ModelRoute as changed."""
        for pair in ROUTING.values():
            for resource in pair:
                self._tell_all(resource, self._optional[resource].items())

    def tell_routes(self, namespace: str, name: str) -> None:
        """Report the ModelRoutes with a name, all of a namespace (no name), or all (no namespace either).

        This concerns both groups.
        """
        for _, routes in ROUTING.values():
            if name:
                self._changed(TrafficKey(routes.full_name, namespace, name))
            elif namespace:
                self._tell_all(routes, self.routes(namespace, routes.group))
            else:
                self._tell_all(routes, self._optional[routes].items())

    def get(self, key: TrafficKey) -> Json | None:
        """Return an object, or None if it does not exist."""
        resource = next(item for item in self._known if item.full_name == key.resource)
        return self._known[resource].of(key.namespace).get(key.name)

    def servers(self, namespace: str, group: str) -> Mapping[str, Json]:
        """Return the ModelServers of a namespace and API group by name, as a copy for threads."""
        return {**self._known[ROUTING[group][0]].of(namespace)}

    def routes(self, namespace: str, group: str) -> Sequence[Json]:
        """Return the ModelRoutes of a namespace and API group."""
        return [*self._known[ROUTING[group][1]].of(namespace).values()]

    def pods(self, namespace: str) -> Sequence[Json]:
        """Return the pods of a namespace."""
        return [*self._known[PODS].of(namespace).values()]

    def pools(self, namespace: str) -> PoolWorld:
        """Return the objects that the status of InferenceObjectives in a namespace depends on."""
        return PoolWorld(
            pools={
                resource.group: {**self._known[resource].of(namespace)}
                for resource in _POOLS
                if self._optional[resource].is_readable
            },
            pods=self.pods(namespace),
            servers=[item for group in ROUTING for item in self.servers(namespace, group).values()],
            models={
                target_key(namespace, item["spec"]["scaleTargetRef"]): item["spec"]["modelID"]
                for item in self._known[VARIANT_AUTOSCALINGS].of(namespace).values()
                if item["spec"]
            },
        )

    def _pod_changed(self, change: Change) -> None:
        """Report the objects that select a pod, unless nothing relevant changed."""
        if change.old == change.new:
            return
        namespace = change.key[0]
        pods = [item for item in (change.old, change.new) if item is not None]
        for group, (resource, _) in ROUTING.items():
            servers = {
                name: item
                for name, item in self.servers(namespace, group).items()
                if any(selects(labels, pod) for labels in selectors_of(item).values() for pod in pods)
            }
            self._tell_all(resource, servers.values())
            self._tell_routes_to(group, namespace, servers)
        for resource in _POOLS:
            for pool in self._known[resource].of(namespace).values():
                if any(selects(pool_labels(pool), pod) for pod in pods):
                    self._tell_objectives(namespace, str(pool["metadata"]["name"]))

    def _server_changed(self, group: str, change: Change) -> None:
        self._tell_routing(ROUTING[group][0], change)
        if not _is_about_status(change):
            self._tell_routes_to(group, change.key[0], (change.key[1],))
            self._tell_objectives(change.key[0])

    def _route_changed(self, group: str, change: Change) -> None:
        """Report a route, and others that share a model name with it, as one may be waiting for it."""
        resource = ROUTING[group][1]
        self._tell_routing(resource, change)
        self._lead(group, change)
        old, new = (names_of(item or {}) for item in (change.old, change.new))
        if old != new:
            names = old | new
            others = (item for item in self.routes(change.key[0], group) if names & names_of(item))
            self._tell_all(resource, others)

    def _tell_routing(self, resource: Resource, change: Change) -> None:
        """Report an object of a routing group; if it comes or goes, also one of its name in the other."""
        self._tell_all(resource, filter(None, (change.old, change.new)))
        twin = twin_of(TrafficKey(resource.full_name, *change.key))
        if twin is not None and None in (change.old, change.new):
            self._changed(twin)

    def _objective_changed(self, change: Change) -> None:
        self._tell_all(INFERENCE_OBJECTIVES, filter(None, (change.old, change.new)))

    def _pool_changed(self, change: Change) -> None:
        if not _is_about_status(change):
            self._tell_objectives(*change.key)

    def _variant_changed(self, change: Change) -> None:
        if change.old != change.new:
            self._tell_objectives(change.key[0])

    def _lead(self, group: str, change: Change) -> None:
        """Record which servers a route targets."""
        namespace, name = change.key
        for server in self._targets.pop((group, change.key), ()):
            routes = self._routes_to[group, (namespace, server)]
            del routes[name]
            if not routes:
                del self._routes_to[group, (namespace, server)]
        if targets := targets_of(change.new or {}):
            self._targets[group, change.key] = targets
        for server in targets:
            self._routes_to.setdefault((group, (namespace, server)), {})[name] = None

    def _tell_routes_to(self, group: str, namespace: str, servers: Iterable[str]) -> None:
        for name in dict.fromkeys(
            name for server in servers for name in self._routes_to.get((group, (namespace, server)), ())
        ):
            self._changed(TrafficKey(ROUTING[group][1].full_name, namespace, name))

    def _tell_objectives(self, namespace: str, pool: str = "") -> None:
        """Report the objectives of a namespace, or only those that reference one of its pools."""
        for item in self._known[INFERENCE_OBJECTIVES].of(namespace).values():
            pool_name = ((item.get("spec") or {}).get("poolRef") or {}).get("name")
            if pool in ("", pool_name):
                self._tell(INFERENCE_OBJECTIVES, item)

    def _tell_all(self, resource: Resource, items: Iterable[Json]) -> None:
        for item in items:
            self._tell(resource, item)

    def _tell(self, resource: Resource, item: Json) -> None:
        metadata = item["metadata"]
        self._changed(TrafficKey(resource.full_name, metadata["namespace"], metadata["name"]))


def _pod(projection: Projection, pod: Json) -> Json:
    """Return a pod reduced to its labels and the reasons why it is not ready.

    Pods that are equal in this form need no notification.
    """
    metadata = projection.metadata(pod["metadata"])
    for name in ("resourceVersion", "generation", "annotations"):
        metadata.pop(name, None)
    status = pod.get("status") or {}
    reduced = {"phase": status.get("phase"), "conditions": [*map(_condition, status.get("conditions") or ())]}
    if not is_ready(pod):
        reduced |= {
            name: status[name] for name in ("initContainerStatuses", "containerStatuses") if name in status
        }
    return {"metadata": metadata, "status": reduced}


def _condition(item: Json) -> Json:
    return {name: item[name] for name in ("type", "status", "reason", "message") if name in item}


def _variant(item: Json) -> Json:
    """Return the reduced VariantAutoscaling, without the status, which changes often and is not needed."""
    metadata, spec = item["metadata"], item.get("spec") or {}
    is_whole = "modelID" in spec and "scaleTargetRef" in spec
    return {
        "metadata": {name: metadata.get(name) for name in ("namespace", "name")},
        "spec": {name: spec[name] for name in ("modelID", "scaleTargetRef")} if is_whole else {},
    }


def _is_about_status(change: Change) -> bool:
    """Tell whether nothing but the status of an object changed."""
    old, new = change.old, change.new
    if old is None or new is None:
        return False
    return all(
        old["metadata"].get(name) == new["metadata"].get(name) for name in ("generation", "annotations")
    )
