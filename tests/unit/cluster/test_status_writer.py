"""Writes of statuses and events while the cached object is outdated."""

from __future__ import annotations

# ruff: noqa: ARG002 (same parameters as for a real cluster)
from typing import Any, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import MODELS
from apiserver.cluster.status_writer import REMEMBERED, StatusWriter
from apiserver.schema.json import Json

OWN = {"Initialized": "", "Active": "", "Failed": "True", "FieldsEffective": "False"}
WELL = {"Initialized": "True", "Active": "False", "Failed": "False", "FieldsEffective": "True"}


class Server:
    """The API server with one object, and a cached copy from before or after the last write."""

    def __init__(self) -> None:
        self.writer = StatusWriter(
            cluster=cast("Cluster", self), events=cast("EventRecorder", self), field_manager="tests"
        )
        self.live: Json = {"metadata": {"namespace": "chat", "name": "a", "uid": "u", "resourceVersion": "1"}}
        self.copy = self.live
        self.writes = 0
        self.is_gone = False
        self.told: list[str] = []

    async def apply(self, _: object, body: Json, **options: Any) -> Json:
        """Store a status, unless the object was deleted."""
        if self.is_gone:
            raise NotFound("gone")
        self.writes += 1
        metadata = self.live["metadata"] | {"resourceVersion": str(self.writes + 1)}
        self.live = {"metadata": metadata, "status": body["status"]}
        return self.live

    def record(self, value: Json, *, type: str, reason: str, **options: Any) -> None:  # noqa: A002
        """Record an event."""
        self.told.append(f"{type} {reason}")

    async def say(self, **conditions: str) -> None:
        """Write conditions with the given statuses; the reason of each contains its status."""
        status = {
            "conditions": [
                {"type": kind, "status": said, "reason": f"{kind}{said}", "message": ""}
                for kind, said in (WELL | conditions).items()
            ]
        }
        await self.writer.write(MODELS, self.writer.latest(self.copy), status, own=OWN)


async def test_conditions_of_a_new_object_cause_events_only_if_noteworthy() -> None:
    """An achieved state and a problem are events; the absence of problems is not."""
    server = Server()
    await server.say(FieldsEffective="False")
    assert server.told == ["Normal InitializedTrue", "Warning FieldsEffectiveFalse"]


async def test_an_outdated_copy_causes_no_repeated_writes_or_events() -> None:
    """A change in the meantime causes one write and one event."""
    server = Server()
    await server.say()
    await server.say()
    assert (server.writes, server.told) == (1, ["Normal InitializedTrue"])
    await server.say(Active="True")
    await server.say(Active="True")
    assert (server.writes, server.told[1:]) == (2, ["Normal ActiveTrue"])

    server.copy = server.live
    await server.say(Active="True")
    assert server.writes == 2
    assert server.writer.written == {}


async def test_the_status_of_a_deleted_object_is_neither_written_nor_announced() -> None:
    """The cache may still have the object."""
    server = Server()
    server.is_gone = True
    await server.say(Failed="True")
    assert (server.writes, server.told, server.writer.written) == (0, [], {})


async def test_written_statuses_are_kept_for_a_limited_number_of_objects() -> None:
    """An object that was deleted right after the write never appears in the cache."""
    server = Server()
    for number in range(REMEMBERED + 2):
        metadata = server.copy["metadata"] | {"uid": str(number), "resourceVersion": "1"}
        server.copy = {"metadata": metadata}
        await server.say()
    assert len(server.writer.written) == REMEMBERED
    assert "0" not in server.writer.written
