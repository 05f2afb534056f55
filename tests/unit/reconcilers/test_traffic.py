"""Statuses of ModelServers, ModelRoutes and InferenceObjectives: what is written, and when nothing is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import cast

import pytest
from support.traffic import objective, pod, pool, route, rule, server

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.schema.json import Json
from controller.observe.objectives import POOL_GROUPS
from controller.reconcilers.status_writer import StatusWriter
from controller.reconcilers.traffic import Further, TrafficKey, TrafficReconciler
from controller.traffic.conditions import Findings
from controller.traffic.inferenceobjective import PoolWorld

A = {"app": "a"}
SERVER = TrafficKey("ModelServer", "chat", "a")
ROUTE = TrafficKey("ModelRoute", "chat", "chat")
OBJECTIVE = TrafficKey("InferenceObjective", "chat", "urgent")


class Translation(StrEnum):
    """What somebody else finds out."""

    TRANSLATED = "Translated"
    PARTIALLY = "Partially"


async def translated(_: Json) -> tuple[Findings, bool]:
    """Return a condition of another type."""
    said: Findings = {
        Translation.TRANSLATED: (False, Translation.PARTIALLY, "spec.rateLimit: cannot be said")
    }
    return said, True


@dataclass
class World:
    """A namespace, and the API server that statuses are written to."""

    objects: dict[TrafficKey, Json] = field(
        default_factory=lambda: {
            SERVER: server("a", {"matchLabels": A}),
            ROUTE: route("chat", rule("a")),
            OBJECTIVE: objective("urgent"),
        }
    )
    ready: int = 1
    upstream: str = ""
    undeclared: frozenset[str] = frozenset()
    """Members of a status that the installed definition does not have."""

    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    further: Mapping[str, Further] = field(default_factory=dict)
    writes: list[Json] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)

    def get(self, key: TrafficKey) -> Json | None:
        """Return an object."""
        return self.objects.get(key)

    def servers(self, _: str) -> Mapping[str, Json]:
        """Return the one ModelServer."""
        return {"a": self.objects[SERVER]}

    def routes(self, _: str) -> Sequence[Json]:
        """Return the one ModelRoute."""
        return [self.objects[ROUTE]]

    def pods(self, _: str) -> Sequence[Json]:
        """Return two pods."""
        return [pod(f"a-{number}", A, is_ready=number < self.ready) for number in range(2)]

    def pools(self, namespace: str) -> PoolWorld:
        """Return one pool."""
        return PoolWorld(pools={POOL_GROUPS[0]: {"llama": pool("llama", A)}}, pods=self.pods(namespace))

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Write a status as server-side apply does: conditions of others stay."""
        if unknown := self.undeclared & body["status"].keys():
            lines = [f".status.{name}: field not declared in schema" for name in sorted(unknown)]
            raise Unavailable(
                "failed to create typed patch object (chat/a): errors:\n  " + "\n  ".join(lines)
            )
        self.writes.append(body["status"])
        key = next(key for key in self.objects if key.name == body["metadata"]["name"])
        old = (self.objects[key].get("status") or {}).get("conditions") or []
        others = [item for item in old if item["type"] == "Programmed"]
        status = body["status"] | {"conditions": [*others, *body["status"]["conditions"]]}
        self.objects[key] = self.objects[key] | {"status": status}
        return body

    def record(self, _: Json, *, type: str, reason: str, **__: str) -> None:  # noqa: A002 (the API's word)
        """Take an event."""
        self.events.append((type, reason))

    async def reconcile(self, key: TrafficKey) -> Json:
        """Look at an object an hour later; what is written of it, empty for nothing."""
        self.time += timedelta(hours=1)
        self.writes.clear()
        self.events.clear()
        writer = StatusWriter(
            cluster=cast("Cluster", self),
            events=cast("EventRecorder", self),
            field_manager="us",
        )
        reconciler = TrafficReconciler(
            writer, self, upstream=lambda: self.upstream, now=lambda: self.time, further=self.further
        )
        assert await reconciler.reconcile(key)
        return self.writes[0] if self.writes else {}


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    """Return status and reason of conditions by type."""
    return {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}


@pytest.mark.parametrize("key", [SERVER, ROUTE, OBJECTIVE], ids=lambda key: key.kind)
async def test_what_is_said_is_not_written_again(key: TrafficKey) -> None:
    """Nor where somebody else has a condition in the same list."""
    world = World()

    first = await world.reconcile(key)
    assert {kind for kind, (status, _) in conditions(first).items() if status == "True"} == {
        "Accepted",
        "ResolvedRefs",
        "Ready",
    }
    status = world.objects[key]["status"]
    status["conditions"].append({"type": "Programmed", "status": "True"})
    assert await world.reconcile(key) == {}
    assert world.events == []


async def test_a_change_of_numbers_is_written_and_no_event() -> None:
    """Only another status or reason is something to tell, and what does not hold is a warning."""
    world = World()
    await world.reconcile(SERVER)
    assert world.events == []
    since = world.writes[0]["conditions"][2]["lastTransitionTime"]

    world.ready = 2
    status = await world.reconcile(SERVER)
    assert (status["readyEndpoints"], status["endpoints"], world.events) == (2, 2, [])
    assert status["conditions"][2]["lastTransitionTime"] == since

    world.ready = 0
    status = await world.reconcile(SERVER)
    assert world.events == [("Warning", "NoEndpoints")]
    assert status["conditions"][2]["lastTransitionTime"] != since


async def test_where_another_controller_acts_only_that_is_said() -> None:
    """What was said before goes; an InferenceObjective is nobody else's."""
    world = World()
    await world.reconcile(ROUTE)

    world.upstream = "modelinfers.workload.volcano.sh"
    assert conditions(await world.reconcile(ROUTE)) == {"Accepted": ("Unknown", "UpstreamController")}
    assert await world.reconcile(ROUTE) == {}
    assert conditions(await world.reconcile(OBJECTIVE))["Accepted"] == ("True", "Accepted")


async def test_conditions_that_are_found_out_elsewhere_are_written_with_the_others() -> None:
    """Of their kind, in the same status, and once."""
    world = World(further={"ModelRoute": Further(types=frozenset(map(str, Translation)), find=translated)})
    status = conditions(await world.reconcile(ROUTE))
    assert status["Translated"] == ("False", "Partially")
    assert status["Ready"] == ("True", "EndpointsReady")
    assert "Translated" not in conditions(await world.reconcile(SERVER))
    assert await world.reconcile(ROUTE) == {}


async def test_a_definition_that_lacks_some_of_the_status_gets_the_rest() -> None:
    """Or nothing, where it has none of it."""
    world = World(undeclared=frozenset({"endpoints", "readyEndpoints"}))
    assert set(await world.reconcile(SERVER)) == {"conditions", "observedGeneration"}
    assert await world.reconcile(SERVER) == {}

    world = World(undeclared=frozenset({"endpoints", "readyEndpoints", "conditions", "observedGeneration"}))
    assert await world.reconcile(SERVER) == {}


async def test_what_is_being_deleted_is_left_alone() -> None:
    """And so is what is gone."""
    world = World()
    world.objects[SERVER]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await world.reconcile(SERVER) == {}
    assert await world.reconcile(TrafficKey("ModelServer", "chat", "gone")) == {}
