"""A ModelRoute behind Gateways: created objects, conditions, and retries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest
from support.routes import route, server

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import Forbidden, NotFound, NotLeading
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import Resource
from apiserver.cluster.status_writer import StatusWriter
from apiserver.schema.json import Json
from controller.expansion.steps import ChildKey, digest_object
from controller.gateways.inputs import InstalledDefinitions
from controller.models.gateways import GatewayCaches, GatewayTranslator
from controller.models.traffic_caches import TrafficCaches

OPTED_IN = {"stowplan.dev/parent-refs": "infra/inference"}
POOL = ChildKey("InferencePool", "l4")
HTTP_ROUTE = ChildKey("HTTPRoute", "chat")


@dataclass
class World:
    """A namespace with one server, and its API server."""

    stored: dict[ChildKey, Json] = field(default_factory=dict)
    unseen: frozenset[ChildKey] = frozenset()
    """Objects without our label, which are not in the caches."""

    value: Json = field(default_factory=lambda: route(annotations=OPTED_IN))
    found: InstalledDefinitions = field(default_factory=InstalledDefinitions)
    refuses: str = ""
    leads: bool = True
    calls: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.value["metadata"] |= {"namespace": "ns", "uid": "uid"}

    def namespace(self, _: str) -> Json | None:
        """Return a Namespace without annotations."""
        return {"metadata": {"name": "ns", "annotations": {}}}

    def installed_definitions(self) -> InstalledDefinitions:
        """Return the served definitions."""
        return self.found

    def children_of(self, _: str) -> Mapping[ChildKey, Json]:
        """Return the cached objects."""
        return {key: digest_object(item) for key, item in self.stored.items() if key not in self.unseen}

    def servers(self, _: str, group: str) -> Mapping[str, Json]:
        """Return the one server, which is of the group of the route."""
        value = server()
        value["metadata"]["namespace"] = "ns"
        return {"l4": value} if self.value["apiVersion"].startswith(f"{group}/") else {}

    def routes(self, *_: str) -> Sequence[Json]:
        """Return the one route."""
        return [self.value]

    async def get(self, resource: Resource, name: str, **_: object) -> Json:
        """Read an object."""
        try:
            return self.stored[ChildKey(resource.kind, name)]
        except KeyError as error:
            raise NotFound(name) from error

    async def apply(self, resource: Resource, body: Json, **_: object) -> Json:
        """Store an object; a changed one has another generation."""
        key = ChildKey(resource.kind, body["metadata"]["name"])
        if not self.leads:
            raise NotLeading("no lease")
        if self.refuses == resource.kind:
            raise Forbidden("no right")
        generation = self.stored.get(key, {}).get("metadata", {}).get("generation", 0)
        metadata = {**body["metadata"], "uid": f"uid of {key.name}", "generation": generation + 1}
        self.stored[key] = {**body, "metadata": metadata}
        self.calls.append(f"apply {key.kind}")
        return self.stored[key]

    async def delete(self, resource: Resource, name: str, **_: object) -> None:
        """Delete an object."""
        if self.refuses == resource.kind:
            raise Forbidden("no right")
        del self.stored[ChildKey(resource.kind, name)]
        self.calls.append(f"delete {resource.kind}")

    def record(self, *_: object, **__: object) -> None:
        """Discard an event."""


class Rig:
    """A translator with its stubs."""

    def __init__(self, world: World) -> None:
        writer = StatusWriter(
            cluster=cast("Cluster", world), events=cast("EventRecorder", world), field_manager="tests"
        )
        self.world = world
        self._translator = GatewayTranslator(
            writer, cast("GatewayCaches", world), cast("TrafficCaches", world)
        )

    async def find(self) -> tuple[str, bool, list[str]]:
        """Reconcile the route; return the reason, whether no retry is needed, and the calls."""
        self.world.calls.clear()
        findings, is_done = await self._translator.find(self.world.value)
        reasons = [str(reason) for _, reason, _ in findings.values()]
        return next(iter(reasons), ""), is_done, [*self.world.calls]


async def test_objects_are_applied_once_and_restored_after_a_change() -> None:
    """An applied object is not applied again until another client changes it."""
    rig = Rig(World())

    assert await rig.find() == ("Translated", True, ["apply InferencePool", "apply HTTPRoute"])
    assert await rig.find() == ("Translated", True, [])
    rig.world.stored[POOL]["spec"] = {}
    assert await rig.find() == ("Translated", True, ["apply InferencePool"])


async def test_a_route_of_a_release_of_kthena_leads_to_servers_of_its_group() -> None:
    """While an object of the same name belongs to a route of the other group, it is not taken over."""
    rig = Rig(World())
    await rig.find()
    ours, version = rig.world.value, "networking.serving.volcano.sh/v1alpha1"
    rig.world.value = ours | {"apiVersion": version, "metadata": ours["metadata"] | {"uid": "theirs"}}
    assert await rig.find() == ("ObjectExists", False, [])

    rig.world.stored.clear()  # the garbage collector deletes them after the other route
    assert await rig.find() == ("Translated", True, ["apply InferencePool", "apply HTTPRoute"])
    for item in rig.world.stored.values():
        assert [owner["apiVersion"] for owner in item["metadata"]["ownerReferences"]] == [version]


async def test_opting_out_deletes_all_objects() -> None:
    """No condition is left either."""
    rig = Rig(World())
    await rig.find()
    del rig.world.value["metadata"]["annotations"]

    assert await rig.find() == ("", True, ["delete HTTPRoute", "delete InferencePool"])
    assert await rig.find() == ("", True, [])


async def test_a_deletion_that_fails_on_opting_out_is_reported_and_retried() -> None:
    """The object still routes requests, and the permission may be granted later."""
    rig = Rig(World())
    await rig.find()
    del rig.world.value["metadata"]["annotations"]
    rig.world.refuses = "HTTPRoute"

    assert await rig.find() == ("RequestRefused", False, ["delete InferencePool"])
    rig.world.refuses = ""
    assert await rig.find() == ("", True, ["delete HTTPRoute"])


@pytest.mark.parametrize("unseen", [frozenset(), frozenset({HTTP_ROUTE})])
async def test_an_existing_object_of_another_owner_is_kept_and_checked_again(
    unseen: frozenset[ChildKey],
) -> None:
    """Without our label there is no event when it is deleted, so the route is retried in any case."""
    foreign = {"kind": "HTTPRoute", "metadata": {"name": "chat"}}
    rig = Rig(World(stored={HTTP_ROUTE: foreign}, unseen=unseen))

    assert await rig.find() == ("ObjectExists", False, ["apply InferencePool"])
    assert rig.world.stored[HTTP_ROUTE] is foreign


async def test_a_rejected_write_is_retried() -> None:
    """The permission may be granted later; the other objects are created."""
    rig = Rig(World(refuses="HTTPRoute"))

    assert await rig.find() == ("RequestRefused", False, ["apply InferencePool"])


async def test_objects_are_kept_when_their_route_can_no_longer_be_translated() -> None:
    """An invalid annotation, a missing definition or an invalid route does not cut off requests."""
    rig = Rig(World())
    await rig.find()
    there = {*rig.world.stored}
    rig.world.value["metadata"]["annotations"] = {"stowplan.dev/parent-refs": "a/b/c/d"}
    assert await rig.find() == ("AnnotationNotUnderstood", True, [])
    rig.world.found = InstalledDefinitions(definitions=frozenset())
    assert await rig.find() == ("NotInstalled", False, [])
    rig.world.value["spec"]["rules"] = [{"targetModels": []}]
    assert (await rig.find())[0] == "Invalid"
    assert {*rig.world.stored} == there


async def test_nothing_is_written_after_the_lease_was_lost() -> None:
    """Another process may act already."""
    rig = Rig(World(leads=False))

    with pytest.raises(NotLeading):
        await rig.find()
    assert rig.world.stored == {}
