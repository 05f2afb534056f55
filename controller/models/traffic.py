"""The reconciler of ModelServers, ModelRoutes and InferenceObjectives, which writes their status.

Other modules can contribute conditions of a kind (`Further`), which are written in the same status. It is
idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Final, NamedTuple, Protocol

from apiserver.cluster.resource import INFERENCE_OBJECTIVES, MODEL_ROUTES, MODEL_SERVERS, Resource
from apiserver.cluster.status_writer import StatusWriter
from apiserver.schema.json import Json
from controller.observe.conditions import condition_list, shorten
from controller.traffic.conditions import Findings, TrafficCondition, TrafficStatus, left_alone
from controller.traffic.status import PoolWorld, objective_found, route_found, server_found

RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (MODEL_SERVERS, MODEL_ROUTES, INFERENCE_OBJECTIVES)
}
"""The reconciled resources, by kind."""

_OWN: Final = frozenset(map(str, TrafficCondition))


class TrafficKey(NamedTuple):
    """Kind, namespace and name of an object."""

    kind: str
    namespace: str
    name: str


class RouteWorld(Protocol):
    """Caches of ModelServers and ModelRoutes."""

    def servers(self, namespace: str) -> Mapping[str, Json]:
        """Return the ModelServers of a namespace by name."""

    def routes(self, namespace: str) -> Sequence[Json]:
        """Return the ModelRoutes of a namespace."""


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
        # In a thread, as the lease must be renewed while many pods are selected.
        found, further = await asyncio.to_thread(self._finding(key, value)), self._further.get(key.kind)
        findings, is_done = dict(found.findings), True
        if further is not None:
            status = (value.get("status") or {}) | found.members
            more, is_done = await further.find(value | {"status": status})
            findings |= more
        await self._writer.write(
            RESOURCES[key.kind],
            value,
            traffic_status(value, TrafficStatus(findings=findings, members=found.members), now=self._now()),
            own=dict.fromkeys(_OWN | (further.types if further else frozenset()), "False"),
        )
        return is_done

    def _finding(self, key: TrafficKey, value: Json) -> Callable[[], TrafficStatus]:
        """Return a function that determines the status of an object, from what the caches have now."""
        world, namespace = self._world, key.namespace
        if key.kind == INFERENCE_OBJECTIVES.kind:
            return partial(objective_found, value, world.pools(namespace))
        if upstream := self._upstream():
            return partial(left_alone, key.kind, upstream)
        if key.kind == MODEL_SERVERS.kind:
            return partial(server_found, value, world.pods(namespace))
        return partial(
            route_found,
            value,
            servers=world.servers(namespace),
            pods=world.pods(namespace),
            routes=world.routes(namespace),
        )


def traffic_status(value: Json, found: TrafficStatus, *, now: datetime) -> Json:
    """Return the status of an object. The time of a condition changes only with the condition."""
    findings = {
        kind: (holds, reason, shorten(text)) for kind, (holds, reason, text) in found.findings.items()
    }
    status: Json = {**found.members, "conditions": condition_list(value, findings, now=now)}
    if value["kind"] != INFERENCE_OBJECTIVES.kind:  # its status has only conditions
        status["observedGeneration"] = value["metadata"].get("generation", 0)
    return status
