"""An HTTP server in this process for handlers of POST requests, and clients for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import TypeAlias

from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestClient

from apiserver.serving.bodies import Answer, Bodies, Post, Posts, Room
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.requests import Requests


def post_of(answer: Answer, *, times: int = 1) -> Post:
    """Return a handler of bodies up to 2 MiB, for which `times` their size is reserved."""
    bodies = Bodies(arriving_bytes=4 << 20, small_bytes=1 << 20, large_bytes=2 << 20, shared=Room(2 << 20))
    return Post(answer=answer, bodies=bodies, limit_bytes=2 << 20, times=times)


Client: TypeAlias = TestClient[web.BaseRequest, None]


@asynccontextmanager
async def client_of(posts: Posts) -> AsyncIterator[Client]:
    """Serve handlers on a loopback address as our processes do, and yield a client."""
    requests = Requests(ProcessMetrics("test"), Readiness(), clock=monotonic)
    client: Client = TestClient(RawTestServer(requests.server(posts)))
    async with client:
        yield client
