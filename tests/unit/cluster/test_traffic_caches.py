"""Whose status a change concerns, and whose it does not."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from support.manifests import variant
from support.traffic import objective, pod, pool, route, rule, server

from controller.reconcilers.traffic import TrafficKey
from controller.traffic_caches import TrafficCaches

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.schema.json import Json

    from .conftest import FakeApiServer

PATHS = {
    "Pod": "/api/v1/namespaces/{}/pods",
    "ModelServer": "/apis/networking.volcano.sh/v1alpha1/namespaces/{}/modelservers",
    "ModelRoute": "/apis/networking.volcano.sh/v1alpha1/namespaces/{}/modelroutes",
    "InferencePool": "/apis/inference.networking.k8s.io/v1/namespaces/{}/inferencepools",
    "InferenceObjective": "/apis/inference.networking.x-k8s.io/v1alpha2/namespaces/{}/inferenceobjectives",
    "VariantAutoscaling": "/apis/llmd.ai/v1alpha2/namespaces/{}/variantautoscalings",
}
A, B = {"app": "a"}, {"app": "b"}
POD = pod("a-1", A, is_ready=False) | {"kind": "Pod"}
SERVER = server("a", {"matchLabels": A})
WORLD: list[Json] = [
    POD,
    SERVER,
    server("b", {"matchLabels": B}),
    route("chat", rule("a")),
    route("other", rule("b")),
    pool("llama", A),
    objective("urgent"),
    objective("lost", "gone"),
    variant("chat"),
]
LAST = {
    "Pod": pod("last", A) | {"kind": "Pod"},
    "ModelServer": server("last", B),
    "ModelRoute": route("last", rule("last")),
    "InferencePool": pool("last", A),
    "VariantAutoscaling": variant("last"),
}
"""What changes last, in another namespace: whoever was told before that was told of all that went before."""


def put(api: FakeApiServer, value: Json, namespace: str = "chat", **metadata: object) -> None:
    """Store an object as another client would."""
    placed = {**value, "metadata": {**value["metadata"], "namespace": namespace, **metadata}}
    api.put(f"{PATHS[value['kind']].format(namespace)}/{value['metadata']['name']}", placed)


class Told:
    """What the caches tell of."""

    def __init__(self) -> None:
        self.names: set[str] = set()
        self._told = asyncio.Event()

    def add(self, key: TrafficKey) -> None:
        """Take note."""
        self.names.add(key.name if key.namespace == "chat" else "END")
        self._told.set()

    async def until(self, names: set[str]) -> None:
        """Wait until all of these were told of."""
        async with asyncio.timeout(20):
            while not names <= self.names:
                self._told.clear()
                await self._told.wait()


@pytest.fixture
async def told(api: FakeApiServer, cluster: Cluster) -> AsyncIterator[Told]:
    """Let caches watch the world until they have told of all of it."""
    for value in WORLD:
        put(api, value)
    for value in (server("end", {"matchLabels": A}), objective("end"), objective("end-2", "last")):
        put(api, value, "end")
    found = Told()
    caches = TrafficCaches(cluster, found.add)
    running = asyncio.create_task(caches.run())
    await caches.synced()
    await found.until({"a", "b", "chat", "other", "urgent", "lost", "END"})
    found.names.clear()
    yield found
    running.cancel()


CHANGES: dict[str, tuple[Json, set[str]]] = {
    "a pod that gets ready": (pod("a-1", A) | {"kind": "Pod"}, {"a", "chat", "urgent"}),
    "a pod that is selected by others now": (
        pod("a-1", B, is_ready=False) | {"kind": "Pod"},
        {"a", "chat", "urgent", "b", "other"},
    ),
    "something of a pod that does not count": (
        POD | {"status": POD["status"] | {"podIP": "10.0.0.1"}},
        set(),
    ),
    "the spec of a server": (
        SERVER | {"metadata": SERVER["metadata"] | {"generation": 3}},
        {"a", "chat", "urgent", "lost"},
    ),
    "the status of a server": (SERVER | {"status": {"endpoints": 3}}, {"a"}),
    "a server that was missing": (server("new", {"matchLabels": B}), {"new", "urgent", "lost"}),
    "a route that answers to a name, too": (route("new", rule("a"), modelName="chat"), {"new", "chat"}),
    "a pool that was missing": (pool("gone", B), {"lost"}),
    "a model that is scaled": (variant("new"), {"urgent", "lost"}),
    "the status of what scales a model": (variant("chat") | {"status": {"decision": {}}}, set()),
}


@pytest.mark.parametrize(("value", "want"), CHANGES.values(), ids=CHANGES.keys())
async def test_a_change_concerns_these_and_no_others(
    api: FakeApiServer, told: Told, value: Json, want: set[str]
) -> None:
    """By selectors, names and references."""
    put(api, value)
    put(api, LAST[value["kind"]], "end")

    await told.until({"END", *want})

    assert told.names == {"END", *want}
