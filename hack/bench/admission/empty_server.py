"""`python -m hack.bench.admission.empty_server DIRECTORY PORT`: aiohttp on uvloop that decides nothing.

What it costs, any server of ours on the same library costs too: it is the floor of this machine.
"""

from __future__ import annotations

import sys

from aiohttp import web

from hack.bench.aiohttp_server import serve_on_uvloop


async def _read(request: web.Request) -> web.Response:
    await request.read()
    return web.Response(body=b"{}", content_type="application/json")


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    app = web.Application()
    app.router.add_post("/mutate", _read)
    serve_on_uvloop(app, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
