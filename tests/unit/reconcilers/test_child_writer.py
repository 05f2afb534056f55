"""What becomes of objects that are to be applied, by what the API server has already."""

from __future__ import annotations

# ruff: noqa: ARG002 (methods take what those of a real cluster take)
from typing import Any

import pytest

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.events import EventRecorder
from apiserver.schema.json import Json
from controller.models.standing import ChildKey, Steps
from controller.reconcilers.child_writer import Acted, ChildWriter
from controller.reconcilers.model import RESOURCES
from controller.reconcilers.status_writer import StatusWriter

GROUP = ChildKey("LeaderWorkerSet", "a")


def owned(*uids: str) -> Json:
    """Return an object that belongs to some others."""
    owners = [{"uid": uid, "kind": "Model"} for uid in uids]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": GROUP.kind,
        "metadata": {"namespace": "chat", "name": GROUP.name, "ownerReferences": owners},
    }


class Server(Cluster):
    """An API server with one object, or with none of its kind."""

    def __init__(self, live: Json | None = None, *, serves: bool = True) -> None:
        self.live = live
        self.serves = serves
        self.applied = 0

    async def get(self, *_: Any, **options: Any) -> Json:
        """Return the object. Raises NotFound as for any path that leads nowhere."""
        if self.live is None:
            raise NotFound("404 page not found", code=404)
        return self.live

    async def apply(self, *_: Any, **options: Any) -> Json:
        """Count."""
        if not self.serves:
            raise NotFound("404 page not found", code=404)
        self.applied += 1
        return owned("model")

    async def act(self) -> Acted:
        """Have one object applied that no local copy has."""
        events = EventRecorder(self, controller="tests", instance="one")
        writer = StatusWriter(cluster=self, events=events, field_manager="tests")
        steps = Steps(apply=(owned("model"),), delete=(), awaited=())
        return await ChildWriter(writer, RESOURCES).act(steps, {}, {})


THERE = {
    "nothing": (None, 1, True, False),
    "what was just made, of which a local copy does not tell yet": (owned("model"), 0, True, False),
    "what is shared with another owner": (owned("other", "model"), 0, True, False),
    "what somebody else made": (owned(), 0, False, True),
    "what was made for another owner": (owned("other"), 0, False, True),
}


@pytest.mark.parametrize(("live", "applied", "found", "foreign"), THERE.values(), ids=THERE.keys())
async def test_what_is_there_already_stays(
    live: Json | None, applied: int, *, found: bool, foreign: bool
) -> None:
    """What is our own is no foreign object, and its replicas are not reset either."""
    server = Server(live)
    acted = await server.act()

    assert server.applied == applied
    assert (GROUP in acted.children, GROUP in acted.foreign) == (found, foreign)
    assert acted.refused == ""


async def test_a_kind_that_is_not_served_is_to_be_installed() -> None:
    """The answer of the server does not say which."""
    acted = await Server(serves=False).act()

    assert acted.refused == (
        "LeaderWorkerSet a: leaderworkerset.x-k8s.io/v1 is not served here:"
        " install the definition of LeaderWorkerSet"
    )
