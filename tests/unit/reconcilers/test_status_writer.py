"""What is written of an object, and told of it, while a local copy of it lags behind."""

from __future__ import annotations

# ruff: noqa: ARG002 (methods take what those of a real cluster take)
from typing import Any, cast

from apiserver.cluster.client import Cluster
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.resource import MODELS
from apiserver.schema.json import Json
from controller.reconcilers.status_writer import REMEMBERED, StatusWriter

OWN = {"Initialized": "", "Active": "", "Failed": "True", "FieldsEffective": "False"}
WELL = {"Initialized": "True", "Active": "False", "Failed": "False", "FieldsEffective": "True"}


class Server:
    """The API server, whose object a copy shows before or after the last write."""

    def __init__(self) -> None:
        self.writer = StatusWriter(
            cluster=cast("Cluster", self), events=cast("EventRecorder", self), field_manager="tests"
        )
        self.live: Json = {"metadata": {"namespace": "chat", "name": "a", "uid": "u", "resourceVersion": "1"}}
        self.copy = self.live
        self.writes = 0
        self.told: list[str] = []

    async def apply(self, _: object, body: Json, **options: Any) -> Json:
        """Store a status."""
        self.writes += 1
        metadata = self.live["metadata"] | {"resourceVersion": str(self.writes + 1)}
        self.live = {"metadata": metadata, "status": body["status"]}
        return self.live

    def record(self, value: Json, *, type: str, reason: str, **options: Any) -> None:  # noqa: A002
        """Take an event."""
        self.told.append(f"{type} {reason}")

    async def say(self, **conditions: str) -> None:
        """Write conditions, each of a status, and with that as its reason."""
        status = {
            "conditions": [
                {"type": kind, "status": said, "reason": f"{kind}{said}", "message": ""}
                for kind, said in (WELL | conditions).items()
            ]
        }
        await self.writer.write(MODELS, self.writer.latest(self.copy), status, own=OWN)


async def test_that_nothing_is_wrong_with_a_new_object_is_no_news() -> None:
    """What it has reached is, and what is wrong."""
    server = Server()
    await server.say(FieldsEffective="False")
    assert server.told == ["Normal InitializedTrue", "Warning FieldsEffectiveFalse"]


async def test_a_copy_that_lags_behind_repeats_nothing() -> None:
    """And what changes meanwhile is told once."""
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


async def test_what_no_copy_tells_of_any_more_is_forgotten() -> None:
    """Such as objects that were deleted right after the write."""
    server = Server()
    for number in range(REMEMBERED + 2):
        metadata = server.copy["metadata"] | {"uid": str(number), "resourceVersion": "1"}
        server.copy = {"metadata": metadata}
        await server.say()
    assert len(server.writer.written) == REMEMBERED
    assert "0" not in server.writer.written
