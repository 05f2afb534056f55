"""Objects that were made for ModelRoutes, as the caches return them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from controller.expansion.parts import MANAGED_BY
from controller.gateways.inputs import HTTP_ROUTES
from controller.models.gateways import GatewayCaches

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster

    from .conftest import FakeApiServer

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
        made = caches.made("chat")
        api.drop(f"{ROUTES}/first")
        while caches.made("chat"):
            await told.get()
    running.cancel()

    assert {key.name for key in made} == {"first"}
