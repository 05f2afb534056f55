"""Caches of Models and of Gateways."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest
from support.models import model

from controller.expansion.adapters import LIST
from controller.expansion.parts import MANAGED_BY
from controller.expansion.steps import ChildKey
from controller.gateways.inputs import HTTP_ROUTES
from controller.models.caches import UNREAD, ModelCaches
from controller.models.gateways import GatewayCaches

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.kinds.identity import Key
    from apiserver.schema.json import Json

    from .conftest import FakeApiServer

MODELS = "/apis/registry.volcano.sh/v1alpha1/namespaces/chat/models"
CORE = "/api/v1/namespaces/chat"
LABELS = {"stowplan.dev/model": "qwen", "stowplan.dev/backend": "l4"}


def named(name: str, served: str = "", **members: object) -> Json:
    """Return a Model with a served name."""
    made = model(metadata={"namespace": "chat", "name": name})
    made["spec"] |= {"name": served} if served else {}
    return made | members


class Stage:
    """The caches, and the names that they have reported."""

    def __init__(self, cluster: Cluster) -> None:
        self.told: asyncio.Queue[Key] = asyncio.Queue()
        self.caches = ModelCaches(cluster, self.told.put_nowait)

    async def names_until(self, last: str) -> list[str]:
        """Return the names that are reported, up to `last`."""
        found: list[str] = []
        async with asyncio.timeout(20):
            while last not in found:
                found.append((await self.told.get())[1])
        return found


@pytest.fixture
async def stage(api: FakeApiServer, cluster: Cluster) -> AsyncIterator[Stage]:
    """Return synced caches of two Models with one served name, and of another one."""
    for value in (named("first", "same"), named("second", "same"), named("third")):
        api.put(f"{MODELS}/{value['metadata']['name']}", value)
    made = Stage(cluster)
    running = asyncio.create_task(made.caches.run())
    await made.caches.wait_until_synced()
    while not made.told.empty():
        made.told.get_nowait()
    yield made
    running.cancel()


async def test_namesakes_are_reported_if_a_served_name_changes_and_only_then(
    api: FakeApiServer, stage: Stage
) -> None:
    """Otherwise, every status of one of a thousand namesakes would cause a thousand reconciliations."""
    api.put(f"{MODELS}/first", named("first", "same", status={"replicas": 1}))
    api.put(f"{MODELS}/third", named("third", status={"replicas": 1}))
    assert await stage.names_until("third") == ["first", "third"]

    api.put(f"{MODELS}/first", named("first", "other"))
    api.put(f"{MODELS}/third", named("third"))
    assert set(await stage.names_until("third")) == {"first", "second", "third"}


async def test_the_caches_keep_little_of_large_objects(api: FakeApiServer, cluster: Cluster) -> None:
    """Anyone can label objects of a megabyte like those of a Model."""
    large = "x" * 900_000
    metadata = {
        "name": "large",
        "namespace": "chat",
        "labels": LABELS,
        "annotations": {"note": large},
        "ownerReferences": [],
    }
    template = {"spec": {"containers": [{"name": "engine", "image": large}]}}
    api.put(
        f"{CORE}/configmaps/large", {"kind": "ConfigMap", "metadata": dict(metadata), "data": {LIST: large}}
    )
    deployment = {
        "kind": "Deployment",
        "metadata": dict(metadata),
        "spec": {"replicas": 2, "template": template},
    }
    api.put("/apis/apps/v1/namespaces/chat/deployments/large", deployment)
    container = {"name": "adapters", "image": large, "ports": [{"containerPort": 8100}]}
    status = {"podIP": "10.0.0.1", "phase": "Running"}
    pod = {"metadata": dict(metadata), "spec": {"containers": [container]}, "status": status}
    api.put(f"{CORE}/pods/large", pod)
    caches = ModelCaches(cluster, lambda _: None)
    running = asyncio.create_task(caches.run())
    await caches.wait_until_synced()
    running.cancel()

    children = caches.children(("chat", "qwen"), ())
    assert children.keys() == {ChildKey("ConfigMap", "large"), ChildKey("Deployment", "large")}
    assert children[ChildKey("Deployment", "large")]["spec"]["replicas"] == 2
    (found,) = caches.pods(("chat", "qwen"))
    assert found["spec"]["containers"] == [{"name": "adapters", "ports": [{"containerPort": 8100}]}]
    assert found["status"] == status
    assert len(json.dumps([*children.values(), found])) < 4000


async def test_the_routing_group_is_that_of_the_releases_only_where_it_is_served(
    api: FakeApiServer, cluster: Cluster
) -> None:
    """A set group is used in any case."""
    groups = []
    for setting, is_served in (("auto", True), ("auto", False), ("networking.serving.volcano.sh", False)):
        api.unserved_groups = set() if is_served else {"networking.serving.volcano.sh"}
        caches = ModelCaches(cluster, lambda _: None, routing_setting=setting)
        running = asyncio.create_task(caches.run())
        await caches.wait_until_synced()
        running.cancel()
        groups.append(caches.routing_group())

    assert groups == [
        "networking.serving.volcano.sh",
        "networking.volcano.sh",
        "networking.serving.volcano.sh",
    ]


async def test_a_model_with_too_many_values_is_not_read(api: FakeApiServer, cluster: Cluster) -> None:
    """The free JSON of twenty Models could take all memory."""
    value = named("dense")
    value["spec"]["backends"][0]["workers"][0]["config"] = {"a": [{}] * 400_000}
    api.put(f"{MODELS}/dense", value)
    api.put(f"{MODELS}/usual", named("usual"))
    caches = ModelCaches(cluster, lambda _: None)
    running = asyncio.create_task(caches.run())
    await caches.wait_until_synced()
    running.cancel()

    dense, usual = (caches.model(("chat", name)) or {} for name in ("dense", "usual"))
    why = "not read, because the object has more than 100,000 values: shorten `config`"
    assert (dense["spec"], dense[UNREAD]) == ({}, why)
    assert usual["spec"] == named("usual")["spec"]
    assert caches.model(("chat", "none")) is None


ROUTES = "/apis/gateway.networking.k8s.io/v1/namespaces/chat/httproutes"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


async def test_what_a_reconciliation_reads_does_not_change_afterwards(
    api: FakeApiServer, cluster: Cluster
) -> None:
    """It is evaluated in a thread, for which a change during an iteration is an error."""
    told: asyncio.Queue[str] = asyncio.Queue()
    spec = {"group": "gateway.networking.k8s.io", "versions": []}
    api.put(f"{DEFINITIONS}/{HTTP_ROUTES}", {"metadata": {"name": HTTP_ROUTES, "uid": "u"}, "spec": spec})
    owner = {"apiVersion": "v1", "kind": "ModelRoute", "name": "first", "uid": "u1", "controller": True}
    metadata = {"name": "first", "namespace": "chat", "labels": MANAGED_BY, "ownerReferences": [owner]}
    api.put(f"{ROUTES}/first", {"metadata": metadata, "spec": {"rules": []}})
    caches = GatewayCaches(cluster, lambda _, name: told.put_nowait(name))
    running = asyncio.create_task(caches.run())
    async with asyncio.timeout(20):
        while await told.get() != "first":
            pass
        made = caches.children_of("chat")
        api.drop(f"{ROUTES}/first")
        while caches.children_of("chat"):
            await told.get()
    running.cancel()

    assert {key.name for key in made} == {"first"}
