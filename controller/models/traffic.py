"""The reconciler of ModelServers, ModelRoutes and InferenceObjectives, which writes their status.

The definitions of Kthena's releases have no status: changed conditions of these objects are events only.
Other modules can contribute conditions of a kind (`Further`), which are written in the same status. It is
idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, Protocol

from apiserver.cluster.resource import (
    INFERENCE_OBJECTIVES,
    MODEL_ROUTES,
    MODEL_SERVERS,
    SERVING_MODEL_ROUTES,
    SERVING_MODEL_SERVERS,
    Resource,
)
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.kthena.groups import SERVING
from apiserver.schema.json import Json
from controller.observe.conditions import condition_list, shorten
from controller.traffic.conditions import Findings, TrafficCondition, TrafficStatus, left_alone
from controller.traffic.status import PoolWorld, objective_status, route_status, server_status

ROUTING: Final[Mapping[str, tuple[Resource, Resource]]] = {
    servers.group: (servers, routes)
    for servers, routes in ((MODEL_SERVERS, MODEL_ROUTES), (SERVING_MODEL_SERVERS, SERVING_MODEL_ROUTES))
}
"""ModelServers and ModelRoutes, by API group."""

RESOURCES: Final[Mapping[str, Resource]] = {
    resource.full_name: resource
    for resource in (*(item for pair in ROUTING.values() for item in pair), INFERENCE_OBJECTIVES)
}
"""The reconciled resources, by their full name."""

_OWN: Final = frozenset(map(str, TrafficCondition))


class TrafficKey(NamedTuple):
    """Resource, namespace and name of an object."""

    resource: str
    """Its full name, such as `modelroutes.networking.volcano.sh`."""

    namespace: str
    name: str


def group_of(value: Json) -> str:
    """Return the API group of an object."""
    return str(value["apiVersion"]).partition("/")[0]


def twin_of(key: TrafficKey) -> TrafficKey | None:
    """Return the key of the object of that kind and name in the other routing group, if the kind has one."""
    resource = RESOURCES[key.resource]
    others = (item for pair in ROUTING.values() for item in pair if item != resource)
    twin = next((other for other in others if other.kind == resource.kind), None)
    return None if twin is None else key._replace(resource=twin.full_name)


class RouteWorld(Protocol):
    """Caches of ModelServers and ModelRoutes."""

    def servers(self, namespace: str, group: str) -> Mapping[str, Json]:
        """Return the ModelServers of a namespace and API group by name."""

    def routes(self, namespace: str, group: str) -> Sequence[Json]:
        """Return the ModelRoutes of a namespace and API group."""


class TrafficWorld(RouteWorld, Protocol):
    """Caches that the reconciler reads."""

    def get(self, key: TrafficKey) -> Json | None:
        """Return an object, or None if it does not exist."""

    def pods(self, namespace: str) -> Sequence[Json]:
        """Return the pods of a namespace."""

    def pools(self, namespace: str) -> PoolWorld:
        """Return the objects that the status of InferenceObjectives in a namespace depends on."""


class Further(NamedTuple):
    """Conditions of one kind that another module determines."""

    types: frozenset[str]
    find: Callable[[Json], Awaitable[tuple[Findings, bool]]]
    """Returns the findings on an object with its new status, and whether no retry is needed.

    Raises ClusterError.
    """


class TrafficReconciler:
    """Reports how requests reach pods."""

    def __init__(
        self,
        writer: StatusWriter,
        world: TrafficWorld,
        *,
        upstream: Callable[[], str],
        now: Callable[[], datetime],
        further: Mapping[str, Further] | None = None,
    ) -> None:
        """Create it; `upstream` returns the API of another controller, or ""; `further` is by kind."""
        self._writer = writer
        self._world = world
        self._upstream = upstream
        self._now = now
        self._further = further or {}

    async def reconcile(self, key: TrafficKey) -> bool:
        """Reconcile one object; return whether no retry is needed.

        Raises ClusterError if a call is rejected.
        """
        value = self._world.get(key)
        if value is None or value["metadata"].get("deletionTimestamp"):
            return True
        value = self._writer.latest(value)
        resource = RESOURCES[key.resource]
        # In a thread, as the lease must be renewed while many pods are selected.
        observed = await asyncio.to_thread(self._finding(key, value))
        further = self._further.get(resource.kind)
        findings, is_done = dict(observed.findings), True
        if further is not None:
            status = (value.get("status") or {}) | observed.members
            more, is_done = await further.find(value | {"status": status})
            findings |= more
        new = traffic_status(
            value, TrafficStatus(findings=findings, members=observed.members), now=self._now()
        )
        own = dict.fromkeys(_OWN | (further.types if further else frozenset()), "False")
        if resource.group == SERVING:
            self._writer.announce(value, new, own=own)
        else:
            await self._writer.write(resource, value, new, own=own)
        return is_done

    def _finding(self, key: TrafficKey, value: Json) -> Callable[[], TrafficStatus]:
        """Return a function that determines the status of an object, from what the caches have now."""
        world, namespace, resource = self._world, key.namespace, RESOURCES[key.resource]
        if resource is INFERENCE_OBJECTIVES:
            return partial(objective_status, value, world.pools(namespace))
        if upstream := self._upstream():
            return partial(left_alone, resource.kind, upstream)
        twin = twin_of(key)
        is_unread = resource.group != SERVING and twin is not None and world.get(twin) is not None
        if resource.kind == MODEL_SERVERS.kind:
            return partial(server_status, value, world.pods(namespace), is_unread=is_unread)
        return partial(
            route_status,
            value,
            servers=world.servers(namespace, resource.group),
            pods=world.pods(namespace),
            routes=world.routes(namespace, resource.group),
            is_unread=is_unread,
        )


def traffic_status(value: Json, observed: TrafficStatus, *, now: datetime) -> Json:
    """Return the status of an object. The time of a condition changes only with the condition."""
    findings = {
        kind: (holds, reason, shorten(text)) for kind, (holds, reason, text) in observed.findings.items()
    }
    status: Json = {**observed.members, "conditions": condition_list(value, findings, now=now)}
    if value["kind"] != INFERENCE_OBJECTIVES.kind:  # its status has only conditions
        status["observedGeneration"] = value["metadata"].get("generation", 0)
    return status
