"""An HTTP server in this process for an application, and clients for it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from time import monotonic
from typing import TypeAlias

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from apiserver.serving.process import Readiness, tracker
from apiserver.serving.process_metrics import ProcessMetrics

Client: TypeAlias = TestClient[web.Request, web.Application]


@asynccontextmanager
async def client_of(application: web.Application) -> AsyncIterator[Client]:
    """Serve an application on a loopback address as our processes do, and yield a client."""
    application.middlewares.insert(0, tracker(ProcessMetrics("test"), Readiness(), clock=monotonic))
    client: Client = TestClient(TestServer(application), auto_decompress=False)
    async with client:
        yield client
