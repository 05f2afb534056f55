"""A process that serves the webhooks on a loopback address, for a test to attack; it tells its port."""

from __future__ import annotations

import asyncio
import sys

from aiohttp import web
from support.reviews import ANYBODY

from apiserver.serving.memory import ask_for_blocks
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.requests import request_middleware
from webhooks.app import Judges, application
from webhooks.config import WebhooksConfig
from webhooks.judging import judges_of
from webhooks.references import NoReferents


async def _judges() -> Judges:
    return judges_of(ANYBODY, NoReferents())


async def serve() -> None:
    """Serve with the limits of an installation, until ended."""
    ask_for_blocks()
    config = WebhooksConfig()
    app = application(
        _judges,
        admission_limit_bytes=config.admission_limit_bytes,
        conversion_limit_bytes=config.conversion_limit_bytes,
    )
    clock = asyncio.get_running_loop().time
    app.middlewares.append(request_middleware(ProcessMetrics("webhooks", "0"), Readiness(), clock=clock))
    runner = web.AppRunner(app, access_log=None, auto_decompress=False)
    await runner.setup()
    assert runner.server is not None
    server = await asyncio.get_running_loop().create_server(runner.server, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)  # noqa: T201 (to the test)
    await server.serve_forever()


if __name__ == "__main__":
    sys.exit(asyncio.run(serve()))
