"""`python -m hack.bench.answering_server MODULE LOOP DIRECTORY PORT`: serve a module's handlers with aiohttp.

This is the server that ours is compared with. It uses TLS with `tls.crt` and `tls.key` of the directory, on a
loopback port. LOOP is `asyncio`, or `uvloop` as in our processes, which also disables the access log.
"""

from __future__ import annotations

import importlib
import ssl
import sys
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Final

import uvloop
from aiohttp import web

from hack.bench.in_process import Answerer
from hack.calling.server_process import ADDRESS

_LIMIT_BYTES: Final = 64 << 20


def _handler(answer: Answerer) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=answer(await request.read()), content_type="application/json")

    return handle


def main(module: str, loop: str, directory: str, port: str) -> None:
    """Serve the handlers that the module's `answers()` returns by path, until SIGTERM."""
    answers: Mapping[str, Answerer] = importlib.import_module(module).answers()
    app = web.Application(client_max_size=_LIMIT_BYTES)
    for path, answer in answers.items():
        app.router.add_post(path, _handler(answer))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(Path(directory) / "tls.crt", Path(directory) / "tls.key")
    if loop == "uvloop":
        own = uvloop.new_event_loop()
        web.run_app(
            app, host=ADDRESS, port=int(port), ssl_context=context, print=None, access_log=None, loop=own
        )
    else:
        web.run_app(app, host=ADDRESS, port=int(port), ssl_context=context, print=None)


if __name__ == "__main__":
    main(*sys.argv[1:])
