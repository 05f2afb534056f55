"""`python -m hack.bench.admission.empty_server DIRECTORY PORT`: aiohttp on uvloop that decides nothing.

What it costs, any server of ours on the same library costs too: it is the floor of this machine.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

import uvloop
from aiohttp import web

from hack.bench.server_process import ADDRESS


async def _read(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=b"{}", content_type="application/json")


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    directory, port = Path(arguments[0]), int(arguments[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    app = web.Application()
    app.router.add_post("/mutate", _read)
    loop = uvloop.new_event_loop()
    web.run_app(app, host=ADDRESS, port=port, ssl_context=context, print=None, access_log=None, loop=loop)


if __name__ == "__main__":
    main(sys.argv[1:])
