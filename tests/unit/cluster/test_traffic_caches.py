"""Status keys that the traffic caches report for each change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from support.manifests import variant
from support.traffic import objective, pod, pool, route, rule, server

from controller.models.traffic_caches import TrafficCaches, TrafficKey

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
"""The last change, in another namespace: when it is reported, all earlier ones have been."""


def put(api: FakeApiServer, value: Json, namespace: str = "chat", **metadata: object) -> None:
    """Store an object, as if by another client."""
    placed = {**value, "metadata": {**value["metadata"], "namespace": namespace, **metadata}}
    api.put(f"{PATHS[value['kind']].format(namespace)}/{value['metadata']['name']}", placed)


class LoaderReport:
    """The caches, and the keys that they report."""

    def __init__(self, cluster: Cluster) -> None:
        self.caches = TrafficCaches(cluster, self.add)
        self.names: set[str] = set()
        self.keys: set[TrafficKey] = set()
        self._told = asyncio.Event()

    def add(self, key: TrafficKey) -> None:
        """Add a reported key."""
        self.names.add(key.name if key.namespace == "chat" else "END")
        self.keys.add(key)
        self._told.set()

    async def until(self, names: set[str]) -> None:
        """Wait until all these names have been reported."""
        async with asyncio.timeout(20):
            while not names <= self.names:
                self._told.clear()
                await self._told.wait()


@pytest.fixture
async def told(api: FakeApiServer, cluster: Cluster) -> AsyncIterator[LoaderReport]:
    """Return the reported keys, emptied after the caches have reported all existing objects."""
    for value in WORLD:
        put(api, value)
    for value in (server("end", {"matchLabels": A}), objective("end"), objective("end-2", "last")):
        put(api, value, "end")
    found = LoaderReport(cluster)
    running = asyncio.create_task(found.caches.run())
    await found.caches.wait_until_synced()
    await found.until({"a", "b", "chat", "other", "urgent", "lost", "END"})
    found.names.clear()
    yield found
    running.cancel()


CHANGES: dict[str, tuple[Json, set[str]]] = {
    "a pod becomes ready": (pod("a-1", A) | {"kind": "Pod"}, {"a", "chat", "urgent"}),
    "a pod is selected by other objects": (
        pod("a-1", B, is_ready=False) | {"kind": "Pod"},
        {"a", "chat", "urgent", "b", "other"},
    ),
    "an irrelevant field of a pod": (POD | {"status": POD["status"] | {"podIP": "10.0.0.1"}}, set()),
    "the spec of a ModelServer": (
        SERVER | {"metadata": SERVER["metadata"] | {"generation": 3}},
        {"a", "chat", "urgent", "lost"},
    ),
    "the status of a ModelServer": (SERVER | {"status": {"endpoints": 3}}, {"a"}),
    "a missing ModelServer is created": (server("new", {"matchLabels": B}), {"new", "urgent", "lost"}),
    "another ModelRoute for the same model name": (
        route("new", rule("a"), modelName="chat"),
        {"new", "chat"},
    ),
    "a missing InferencePool is created": (pool("gone", B), {"lost"}),
    "a VariantAutoscaling is created": (variant("new"), {"urgent", "lost"}),
    "the status of a VariantAutoscaling": (variant("chat") | {"status": {"decision": {}}}, set()),
}


@pytest.mark.parametrize(("value", "want"), CHANGES.values(), ids=CHANGES.keys())
async def test_a_change_reports_exactly_the_affected_objects(
    api: FakeApiServer, told: LoaderReport, value: Json, want: set[str]
) -> None:
    """They are found by selectors, names and references."""
    put(api, value)
    put(api, LAST[value["kind"]], "end")

    await told.until({"END", *want})

    assert told.names == {"END", *want}


async def test_a_route_of_unexpected_form_does_not_end_the_watch(
    api: FakeApiServer, told: LoaderReport
) -> None:
    """It was stored without validation. Once it is corrected, changes of its pods are reported for it."""
    garbage = route("chat") | {"spec": {"rules": ["a"], "loraAdapters": [{}], "modelName": "chat"}}
    put(api, garbage)
    put(api, route("other", rule("a"), modelName="chat"))
    await told.until({"chat", "other"})

    put(api, route("chat", rule("b")))
    put(api, LAST["ModelRoute"], "end")
    await told.until({"END"})
    told.names.clear()
    put(api, pod("b-1", B) | {"kind": "Pod"})
    await told.until({"chat"})
    assert told.names == {"b", "chat"}


async def test_a_route_is_reported_when_one_of_its_name_comes_or_goes_in_the_other_group(
    api: FakeApiServer, told: LoaderReport
) -> None:
    """Each group has its own servers: a change of one concerns the routes of its group alone."""
    groups = ("networking.volcano.sh", "networking.serving.volcano.sh")
    ours, theirs = (TrafficKey(f"modelroutes.{group}", "chat", "chat") for group in groups)
    path = PATHS["ModelRoute"].replace(*groups).format("chat") + "/chat"
    value = route("chat", rule("a"))
    value |= {"apiVersion": f"{groups[1]}/v1alpha1", "metadata": value["metadata"] | {"namespace": "chat"}}
    told.keys.clear()
    api.put(path, value)
    await told.until({"chat"})
    assert told.keys == {ours, theirs}

    told.keys.clear()
    put(api, SERVER | {"metadata": SERVER["metadata"] | {"generation": 3}})
    put(api, LAST["ModelRoute"], "end")
    await told.until({"END"})
    assert ours in told.keys
    assert theirs not in told.keys

    told.keys.clear()
    told.names.clear()
    api.drop(path)
    await told.until({"chat"})
    assert told.keys == {ours, theirs}


async def test_what_a_reconciliation_reads_does_not_change_afterwards(
    api: FakeApiServer, told: LoaderReport
) -> None:
    """It is evaluated in a thread, for which a change during an iteration is an error."""
    servers, pools = told.caches.servers("chat", "networking.volcano.sh"), told.caches.pools("chat").pools
    put(api, server("new", {"matchLabels": A}))
    put(api, pool("new", A))
    put(api, LAST["InferencePool"], "end")
    await told.until({"new", "END"})

    assert servers.keys() == {"a", "b"}
    assert {name for group in pools.values() for name in group} == {"llama"}
    assert told.caches.servers("chat", "networking.volcano.sh").keys() == {"a", "b", "new"}
