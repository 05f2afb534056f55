"""The reconciler of ModelServers, ModelRoutes and InferenceObjectives, which writes their status.

The definitions of Kthena's releases have no status: changed conditions of these objects are events only.
Behind Gateways, a ModelRoute has a condition about its translation, in the same status. It is idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Final

from apiserver.cluster.resource import INFERENCE_OBJECTIVES, MODEL_ROUTES, MODEL_SERVERS
from apiserver.cluster.status_writer import StatusWriter
from apiserver.kinds.kthena.groups import SERVING
from apiserver.schema.json import Json
from controller.gateways.reporting import GatewayCondition
from controller.models.gateways import GatewayTranslator
from controller.models.traffic_caches import RESOURCES, TrafficCaches, TrafficKey, twin_of
from controller.observe.conditions import condition_list
from controller.traffic.endpoints import TrafficCondition, TrafficStatus, left_alone
from controller.traffic.status import objective_status, route_status, server_status

_OWN: Final = dict.fromkeys(map(str, TrafficCondition), "False")
_OWN_OF_TRANSLATED: Final = _OWN | dict.fromkeys(map(str, GatewayCondition), "False")


class TrafficReconciler:
    """Reports how requests reach pods."""

    def __init__(
        self,
        writer: StatusWriter,
        world: TrafficCaches,
        *,
        upstream: Callable[[], str],
        now: Callable[[], datetime],
        gateways: GatewayTranslator | None = None,
    ) -> None:
        """Create it; `upstream` returns the API of another controller, or ""."""
        self._writer = writer
        self._world = world
        self._upstream = upstream
        self._now = now
        self._gateways = gateways

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
        observed = await asyncio.to_thread(self._status_source(key, value))
        findings, is_done, own = dict(observed.findings), True, _OWN
        if self._gateways is not None and resource.kind == MODEL_ROUTES.kind:
            status = (value.get("status") or {}) | observed.members
            more, is_done = await self._gateways.find(value | {"status": status})
            findings |= more
            own = _OWN_OF_TRANSLATED
        new = traffic_status(
            value, TrafficStatus(findings=findings, members=observed.members), now=self._now()
        )
        if resource.group == SERVING:
            self._writer.announce(value, new, own=own)
        else:
            await self._writer.write(resource, value, new, own=own)
        return is_done

    def _status_source(self, key: TrafficKey, value: Json) -> Callable[[], TrafficStatus]:
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
    status: Json = {**observed.members, "conditions": condition_list(value, observed.findings, now=now)}
    if value["kind"] != INFERENCE_OBJECTIVES.kind:  # its status has only conditions
        status["observedGeneration"] = value["metadata"].get("generation", 0)
    return status
