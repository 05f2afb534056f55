"""Messages about owned objects that the API server rejects."""

from __future__ import annotations

# ruff: noqa: ARG002 (same parameters as for a real cluster)
from typing import Any

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound
from apiserver.cluster.events import EventRecorder
from apiserver.cluster.status_writer import StatusWriter
from apiserver.schema.json import Json
from controller.expansion.standing import Steps
from controller.models.child_writer import ChildWriter
from controller.models.model import RESOURCES


class Server(Cluster):
    """An API server that does not serve the kind."""

    def __init__(self) -> None:
        pass

    async def apply(self, *_: Any, **options: Any) -> Json:
        """Respond as to any unknown path."""
        raise NotFound("404 page not found", code=404)


async def test_the_message_about_a_kind_that_is_not_served_asks_to_install_its_definition() -> None:
    """The response of the server does not name the kind."""
    server = Server()
    events = EventRecorder(server, controller="tests", instance="one")
    writer = StatusWriter(cluster=server, events=events, field_manager="tests")
    metadata = {"namespace": "chat", "name": "a"}
    item = {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": metadata}
    steps = Steps(apply=(item,), delete=(), awaited=())
    acted = await ChildWriter(writer, RESOURCES).act(steps, {}, {})

    assert acted.refused == (
        "LeaderWorkerSet a: leaderworkerset.x-k8s.io/v1 is not served by this cluster: install the"
        " definition of LeaderWorkerSet"
    )
