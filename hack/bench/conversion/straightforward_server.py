"""`python -m hack.bench.conversion.straightforward_server DIRECTORY PORT`: the straightforward way, served.

Plain aiohttp on asyncio's own loop, TLS with `tls.crt` and `tls.key` of the directory.
"""

from __future__ import annotations

import sys

from aiohttp import web

from hack.bench.aiohttp_server import serve
from hack.bench.conversion.reviews import PATH
from hack.bench.conversion.straightforward import respond

_LIMIT_BYTES = 64 << 20


async def _convert(request: web.Request) -> web.Response:
    return web.json_response(respond(await request.json()))


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    app = web.Application(client_max_size=_LIMIT_BYTES)
    app.router.add_post(PATH, _convert)
    serve(app, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
