"""An HTTP server on the loopback interface that answers one path."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import ip_network
from ssl import SSLContext

from aiohttp import web
from aiohttp.typedefs import Handler

from apiserver.schema.json import Json
from controller.engines.scraping import ScrapeLimits


@asynccontextmanager
async def served(
    handler: Handler, *, path: str = "/metrics", address: str = "127.0.0.1", tls: SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve one path, whatever the method; yields the port."""
    app = web.Application()
    app.router.add_route("*", path, handler)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address, 0, ssl_context=tls).start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def serving_pod(port: int, *, namespace: str = "ns", name: str = "engine") -> Json:
    """Return a pod whose address and port are those of a server on this machine."""
    return {
        "metadata": {"namespace": namespace, "name": name},
        "spec": {"containers": [{"ports": [{"name": "http", "containerPort": port}]}]},
        "status": {"podIP": "127.0.0.1"},
    }


LOOPBACK = ScrapeLimits(
    port_names=("http",),
    pod_networks=(ip_network("127.0.0.0/8"),),
    timeout_seconds=2,
    limit_bytes=1 << 20,
    concurrency=32,
)
"""Limits of a scraper for pods that are servers on this machine."""
