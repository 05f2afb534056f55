"""Statuses of ModelServers, ModelRoutes and InferenceObjectives, and when they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import cast

import pytest
from support.traffic import objective, pod, pool, route, rule, server

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Unavailable
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.status_writer import StatusWriter
from apiserver.schema.json import Json
from controller.gateways.reporting import GatewayCondition, GatewayReason
from controller.models.gateways import GatewayTranslator
from controller.models.traffic import TrafficReconciler
from controller.models.traffic_caches import TrafficCaches, TrafficKey
from controller.observe.objectives import POOL_GROUPS
from controller.traffic.endpoints import Findings
from controller.traffic.status import PoolWorld

A = {"app": "a"}
SERVER = TrafficKey("modelservers.networking.volcano.sh", "chat", "a")
ROUTE = TrafficKey("modelroutes.networking.volcano.sh", "chat", "chat")
OBJECTIVE = TrafficKey("inferenceobjectives.inference.networking.x-k8s.io", "chat", "urgent")


class Translator:
    """Translates in part."""

    async def find(self, _: Json) -> tuple[Findings, bool]:
        """Return a condition of another type."""
        finding = False, GatewayReason.PARTIALLY, "spec.rateLimit: cannot be said"
        return {GatewayCondition.TRANSLATED: finding}, True


@dataclass
class World:
    """A namespace, and its API server, which records statuses and events."""

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
    """Fields of the status that the installed definition does not have."""

    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    translator: Translator | None = None
    writes: list[Json] = field(default_factory=list)
    events: list[tuple[str, str]] = field(default_factory=list)

    def get(self, key: TrafficKey) -> Json | None:
        """Return an object."""
        return self.objects.get(key)

    def servers(self, *_: str) -> Mapping[str, Json]:
        """Return the only ModelServer."""
        return {"a": self.objects[SERVER]}

    def routes(self, *_: str) -> Sequence[Json]:
        """Return the only ModelRoute."""
        return [self.objects[ROUTE]]

    def pods(self, _: str) -> Sequence[Json]:
        """Return two pods."""
        return [pod(f"a-{number}", A, is_ready=number < self.ready) for number in range(2)]

    def pools(self, namespace: str) -> PoolWorld:
        """Return one pool."""
        return PoolWorld(pools={POOL_GROUPS[0]: {"llama": pool("llama", A)}}, pods=self.pods(namespace))

    async def apply(self, _resource: object, body: Json, **_options: object) -> Json:
        """Store a status like server-side apply: conditions of other field managers are kept."""
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

    def record(self, _: Json, *, type: str, reason: str, **__: str) -> None:  # noqa: A002 (an API term)
        """Record an event."""
        self.events.append((type, reason))

    def writer(self) -> StatusWriter:
        """Return a writer without memory."""
        return StatusWriter(
            cluster=cast("Cluster", self), events=cast("EventRecorder", self), field_manager="us"
        )

    async def reconcile(self, key: TrafficKey, writer: StatusWriter | None = None) -> Json:
        """Reconcile an object an hour later; return the written status, which is empty without a write."""
        self.time += timedelta(hours=1)
        self.writes.clear()
        self.events.clear()
        reconciler = TrafficReconciler(
            writer or self.writer(),
            cast("TrafficCaches", self),
            upstream=lambda: self.upstream,
            now=lambda: self.time,
            gateways=cast("GatewayTranslator | None", self.translator),
        )
        assert await reconciler.reconcile(key)
        return self.writes[0] if self.writes else {}


def conditions(status: Json) -> dict[str, tuple[str, str]]:
    """Return status and reason of conditions by type."""
    return {item["type"]: (item["status"], item["reason"]) for item in status["conditions"]}


@pytest.mark.parametrize("key", [SERVER, ROUTE, OBJECTIVE], ids=lambda key: key.resource)
async def test_an_unchanged_status_is_not_written_again(key: TrafficKey) -> None:
    """This also holds if another controller has a condition in the same list."""
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


async def test_changed_figures_are_written_without_an_event() -> None:
    """Only a changed status or reason is an event, and a condition that does not hold is a warning."""
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


async def test_next_to_an_upstream_controller_only_this_fact_is_reported() -> None:
    """Earlier conditions are removed; InferenceObjectives have no upstream controller."""
    world = World()
    await world.reconcile(ROUTE)

    world.upstream = "modelinfers.workload.volcano.sh"
    assert conditions(await world.reconcile(ROUTE)) == {"Accepted": ("Unknown", "UpstreamController")}
    assert await world.reconcile(ROUTE) == {}
    assert conditions(await world.reconcile(OBJECTIVE))["Accepted"] == ("True", "Accepted")


async def test_the_condition_about_a_translation_is_written_in_the_same_status() -> None:
    """Only ModelRoutes have it, and it is written once."""
    world = World(translator=Translator())
    status = conditions(await world.reconcile(ROUTE))
    assert status["Translated"] == ("False", "Partially")
    assert status["Ready"] == ("True", "EndpointsReady")
    assert "Translated" not in conditions(await world.reconcile(SERVER))
    assert await world.reconcile(ROUTE) == {}


async def test_fields_that_the_installed_definition_lacks_are_omitted() -> None:
    """Nothing is written if it lacks all of them."""
    world = World(undeclared=frozenset({"endpoints", "readyEndpoints"}))
    assert set(await world.reconcile(SERVER)) == {"conditions", "observedGeneration"}
    assert await world.reconcile(SERVER) == {}

    world = World(undeclared=frozenset({"endpoints", "readyEndpoints", "conditions", "observedGeneration"}))
    assert await world.reconcile(SERVER) == {}


async def test_of_an_object_of_a_release_changed_conditions_are_events() -> None:
    """The definitions of Kthena's releases have no status. A new condition that holds is no event."""
    key = TrafficKey("modelservers.networking.serving.volcano.sh", "chat", "a")
    value = server("a", {"matchLabels": A}) | {"apiVersion": "networking.serving.volcano.sh/v1alpha1"}
    value["metadata"] |= {"resourceVersion": "1", "uid": "a"}
    world = World(objects={key: value}, ready=0)
    writer = world.writer()

    assert await world.reconcile(key, writer) == {}
    assert world.events == [("Warning", "NoEndpoints")]
    await world.reconcile(key, writer)
    assert world.events == []
    world.ready = 1
    await world.reconcile(key, writer)
    assert world.events == [("Normal", "EndpointsReady")]
    assert world.writes == []


async def test_an_object_that_no_release_reads_next_to_one_of_its_name_gets_a_warning() -> None:
    """Both are reported on, each with the objects of its own group."""
    twin = TrafficKey("modelroutes.networking.serving.volcano.sh", "chat", "chat")
    world = World()
    world.objects[twin] = route("chat", rule("a")) | {"apiVersion": "networking.serving.volcano.sh/v1alpha1"}

    (accepted,) = [
        item for item in (await world.reconcile(ROUTE))["conditions"] if item["type"] == "Accepted"
    ]
    assert (accepted["status"], accepted["reason"]) == ("True", "AcceptedWithWarnings")
    assert accepted["message"] == (
        "Kthena's releases read the one of this name in networking.serving.volcano.sh: delete one of the two"
    )
    await world.reconcile(twin)
    assert world.events == []
    del world.objects[twin]
    assert conditions(await world.reconcile(ROUTE))["Accepted"] == ("True", "Accepted")


async def test_an_object_that_is_being_deleted_is_ignored() -> None:
    """The same holds for a deleted one."""
    world = World()
    world.objects[SERVER]["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert await world.reconcile(SERVER) == {}
    assert await world.reconcile(SERVER._replace(name="gone")) == {}
