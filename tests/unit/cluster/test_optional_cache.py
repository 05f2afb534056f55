"""Caches of optional collections that may be forbidden or not served."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from aiohttp import web
from support.logs import capture_logs

from apiserver.cluster.cache import Change, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.optional_cache import OptionalCache
from controller.caches import NODE_POOLS, RESOURCE_QUOTAS

QUOTA = {"metadata": {"namespace": "ns", "name": "q", "resourceVersion": "1"}}


class Server:
    """A stub API server with one ResourceQuota that rejects the first list requests with given codes."""

    def __init__(self, refusals: list[int]) -> None:
        self.refusals = refusals
        self.is_served = True
        self.has_ended = asyncio.Event()
        self.is_watched = asyncio.Event()

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Return an error, a list, or an open watch."""
        if not self.is_served:
            return web.json_response({"kind": "Status", "code": 404, "message": "not found"}, status=404)
        if request.query.get("watch"):
            response = web.StreamResponse()
            await response.prepare(request)
            self.is_watched.set()
            await self.has_ended.wait()
            return response
        if self.refusals:
            code = self.refusals.pop(0)
            body = {"kind": "Status", "code": code, "message": f"refused with {code}"}
            return web.json_response(body, status=code)
        return web.json_response({"metadata": {"resourceVersion": "1"}, "items": [QUOTA]})


@contextlib.asynccontextmanager
async def connected(server: Server, directory: Path) -> AsyncIterator[Cluster]:
    """Serve on loopback and yield a connection."""
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", server.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    config = {
        "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{runner.addresses[0][1]}"}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "users": [{"name": "u", "user": {}}],
        "current-context": "c",
    }
    path = directory / "kubeconfig"
    path.write_text(json.dumps(config), encoding="utf-8")
    try:
        async with await Cluster.connect(path) as cluster:
            yield cluster
    finally:
        server.has_ended.set()
        await runner.cleanup()


@contextlib.asynccontextmanager
async def running(cluster: Cluster, *, ask_again_seconds: float) -> AsyncIterator[OptionalCache]:
    """Run a cache of ResourceQuotas: enter the block when it is settled, and stop it at the end."""
    cache = OptionalCache(
        cluster,
        RESOURCE_QUOTAS,
        without="quotas",
        silent_seconds=600.0,
        reduce=without_managed_fields,
        ask_again_seconds=ask_again_seconds,
    )
    task = asyncio.create_task(cache.run())
    try:
        async with asyncio.timeout(60):
            await cache.settled.wait()
        yield cache
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


async def test_a_settled_cache_has_listed_a_readable_collection(tmp_path: Path) -> None:
    """The first decision can already use its objects."""
    async with connected(Server([]), tmp_path) as cluster, running(cluster, ask_again_seconds=600.0) as cache:
        assert [item["metadata"]["name"] for item in cache.items()] == ["q"]


@pytest.mark.parametrize(("code", "told"), [(403, 1), (404, 0)], ids=["no permission", "no such API"])
async def test_an_unreadable_collection_settles_as_empty(tmp_path: Path, code: int, told: int) -> None:
    """A missing permission is logged as a warning, an API that is not served is not."""
    with capture_logs() as lines:
        async with (
            connected(Server([code]), tmp_path) as cluster,
            running(cluster, ask_again_seconds=600.0) as cache,
        ):
            assert cache.items() == ()

    warnings = [line for line in lines if line["log_level"] == "warning"]
    assert [line["event"] for line in warnings] == ["continuing without quotas"] * told


async def test_a_permission_granted_later_takes_effect_and_its_lack_is_logged_once(tmp_path: Path) -> None:
    """No restart is needed."""
    server = Server([403, 403, 403])
    with capture_logs() as lines:
        async with (
            connected(server, tmp_path) as cluster,
            running(cluster, ask_again_seconds=0.01) as cache,
            asyncio.timeout(60),
        ):
            await server.is_watched.wait()
            assert len(cache.items()) == 1

    warnings = [line["why"] for line in lines if line["log_level"] == "warning"]
    assert warnings == ["refused with 403"]


async def test_the_cache_is_emptied_if_its_definition_is_deleted_and_filled_again_later(
    tmp_path: Path,
) -> None:
    """No restart is needed."""
    server = Server([])
    changes: asyncio.Queue[Change] = asyncio.Queue()
    async with (
        connected(server, tmp_path) as cluster,
        running(cluster, ask_again_seconds=0.01) as cache,
        asyncio.timeout(60),
    ):
        cache.subscribe(changes.put_nowait)
        assert (await changes.get()).key == ("ns", "q")
        await server.is_watched.wait()

        server.is_served = False
        server.has_ended.set()
        assert (await changes.get()).new is None
        assert (cache.items(), cache.why_lost()) == ((), None)
        assert not cache.is_readable

        server.is_served = True
        server.has_ended.clear()
        assert (await changes.get()).new is not None
        assert len(cache.items()) == 1


def test_paths_of_optional_collections_are_those_of_kubernetes_and_karpenter() -> None:
    """A wrong path would look like an API that is not served."""
    assert RESOURCE_QUOTAS.path() == "/api/v1/resourcequotas"
    assert NODE_POOLS.path() == "/apis/karpenter.sh/v1/nodepools"
