"""One ModelServer, ModelRoute or InferenceObjective: write how it stands to its status.

What else is to be said of a kind comes from whoever finds it out (`Further`): its conditions are written with
the others, in one status. It may run twice without harm.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from typing import Final, NamedTuple, Protocol

from apiserver.cluster.resource import INFERENCE_OBJECTIVES, MODEL_ROUTES, MODEL_SERVERS, Resource
from apiserver.schema.json import Json
from controller.observe.condition_list import condition_list, shortened
from controller.reconcilers.status_writer import StatusWriter
from controller.traffic.conditions import Findings, Found, TrafficCondition, left_alone
from controller.traffic.inferenceobjective import PoolWorld, objective_found
from controller.traffic.modelroute import route_found
from controller.traffic.modelserver import server_found

RESOURCES: Final[Mapping[str, Resource]] = {
    resource.kind: resource for resource in (MODEL_SERVERS, MODEL_ROUTES, INFERENCE_OBJECTIVES)
}
"""What is reported on, by kind."""

_OWN: Final = frozenset(map(str, TrafficCondition))


class TrafficKey(NamedTuple):
    """Which object."""

    kind: str
    namespace: str
    name: str


class TrafficWorld(Protocol):
    """Local copies of what is looked at."""

    def get(self, key: TrafficKey) -> Json | None:
        """Return an object; None where it is gone."""

    def servers(self, namespace: str) -> Mapping[str, Json]:
        """Return the ModelServers of a namespace by name."""

    def routes(self, namespace: str) -> Sequence[Json]:
        """Return the ModelRoutes of a namespace."""

    def pods(self, namespace: str) -> Sequence[Json]:
        """Return the pods of a namespace."""

    def pools(self, namespace: str) -> PoolWorld:
        """Return what objectives of a namespace are looked at with."""


class Further(NamedTuple):
    """Conditions of one kind that are found out elsewhere."""

    types: frozenset[str]
    find: Callable[[Json], Awaitable[tuple[Findings, bool]]]
    """From an object to its findings, and whether nothing has to be tried again. Raises ClusterError."""


class TrafficReconciler:
    """Says how requests find pods."""

    def __init__(
        self,
        writer: StatusWriter,
        world: TrafficWorld,
        *,
        upstream: Callable[[], str],
        now: Callable[[], datetime],
        further: Mapping[str, Further] | None = None,
    ) -> None:
        """`upstream` tells the API of another controller, empty for none; `further` is by kind."""
        self._writer = writer
        self._world = world
        self._upstream = upstream
        self._now = now
        self._further = further or {}

    async def reconcile(self, key: TrafficKey) -> bool:
        """Work on one object; returns whether nothing has to be tried again.

        Raises the ClusterError of what is refused.
        """
        value = self._world.get(key)
        if value is None or value["metadata"].get("deletionTimestamp"):
            return True
        value = self._writer.latest(value)
        found, further = self._found(key, value), self._further.get(key.kind)
        findings, is_done = dict(found.findings), True
        if further is not None:
            more, is_done = await further.find(value)
            findings |= more
        await self._writer.write(
            RESOURCES[key.kind],
            value,
            traffic_status(value, Found(findings=findings, members=found.members), now=self._now()),
            own=dict.fromkeys(_OWN | (further.types if further else frozenset()), "False"),
        )
        return is_done

    def _found(self, key: TrafficKey, value: Json) -> Found:
        world, namespace = self._world, key.namespace
        if key.kind == INFERENCE_OBJECTIVES.kind:
            return objective_found(value, world.pools(namespace))
        if upstream := self._upstream():
            return left_alone(key.kind, upstream)
        if key.kind == MODEL_SERVERS.kind:
            return server_found(value, world.pods(namespace))
        return route_found(
            value,
            servers=world.servers(namespace),
            pods=world.pods(namespace),
            routes=world.routes(namespace),
        )


def traffic_status(value: Json, found: Found, *, now: datetime) -> Json:
    """Return the status of an object. Times change where a condition changes only."""
    findings = {
        kind: (holds, reason, shortened(text)) for kind, (holds, reason, text) in found.findings.items()
    }
    status: Json = {**found.members, "conditions": condition_list(value, findings, now=now)}
    if value["kind"] != INFERENCE_OBJECTIVES.kind:  # whose status has conditions and nothing else
        status["observedGeneration"] = value["metadata"].get("generation", 0)
    return status
