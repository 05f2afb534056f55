"""A server process for tests: it responds, waits, fails and ends as configured."""

from __future__ import annotations

import asyncio
import json
import sys
from functools import partial
from pathlib import Path

from aiohttp import web

from apiserver.log import configure_logging
from apiserver.serving.config import Limits, ServingConfig
from apiserver.serving.process import Readiness, run_server
from apiserver.serving.process_metrics import ProcessMetrics


async def echo(request: web.Request) -> web.Response:
    """Respond with the body, after the number of seconds in the query."""
    body = await request.read()
    await asyncio.sleep(float(request.query.get("seconds", "0")))
    return web.Response(body=body)


async def fail(_request: web.Request) -> web.Response:
    """Raise an exception whose text would forge a log line."""
    raise RuntimeError('secret\n{"level":"info","event":"forged"}')


async def end(how: str) -> None:
    """Run as background work that ends."""
    await asyncio.sleep(0.05)
    if how == "raise":
        raise RuntimeError("broken\nin two lines")


def main(settings: dict[str, object]) -> int:
    """Run until the process is stopped."""
    configure_logging(format="json")
    application = web.Application()
    application.router.add_post("/echo", echo)
    application.router.add_get("/fail/{name}", fail)
    background = [partial(end, str(settings["job"]))] if "job" in settings else []
    return run_server(
        None if settings.get("plain") else application,
        ServingConfig(
            bind_address="127.0.0.1",
            port=int(str(settings.get("port", 0))),
            metrics_port=0,
            health_port=0,
            certificate_directory=str(Path(str(settings["certificate"])).parent),
            drain_seconds=int(str(settings.get("drain_seconds", 0))),
        ),
        limits=Limits(finish_seconds=5.0),
        readiness=Readiness(),
        metrics=ProcessMetrics("echo"),
        background=background,
    )


if __name__ == "__main__":
    sys.exit(main(json.loads(sys.argv[1])))
