"""Serving an aiohttp application as the servers beside ours do: over TLS, on a loopback port."""

from __future__ import annotations

import ssl
from collections.abc import Sequence
from pathlib import Path

import uvloop
from aiohttp import web

from hack.bench.server_process import ADDRESS


def serve(app: web.Application, arguments: Sequence[str]) -> None:
    """Serve until SIGTERM on asyncio's own loop, by the arguments DIRECTORY PORT."""
    context, port = _read(arguments)
    web.run_app(app, host=ADDRESS, port=port, ssl_context=context, print=None)


def serve_on_uvloop(app: web.Application, arguments: Sequence[str]) -> None:
    """Serve until SIGTERM on the loop that ours runs on, without a log of requests."""
    context, port = _read(arguments)
    loop = uvloop.new_event_loop()
    web.run_app(app, host=ADDRESS, port=port, ssl_context=context, print=None, access_log=None, loop=loop)


def _read(arguments: Sequence[str]) -> tuple[ssl.SSLContext, int]:
    directory, port = Path(arguments[0]), int(arguments[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    return context, port
