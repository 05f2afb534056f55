"""`python -m hack.bench.conversion.straightforward_server DIRECTORY PORT`: the straightforward way, served.

Plain aiohttp on asyncio's own loop, TLS with `tls.crt` and `tls.key` of the directory.
"""

from __future__ import annotations

import ssl
import sys
from pathlib import Path

from aiohttp import web

from hack.bench.conversion.reviews import PATH
from hack.bench.conversion.straightforward import respond
from hack.bench.server_process import ADDRESS

_LIMIT_BYTES = 64 << 20


async def _convert(request: web.Request) -> web.Response:
    return web.json_response(respond(await request.json()))


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    directory, port = Path(arguments[0]), int(arguments[1])
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    app = web.Application(client_max_size=_LIMIT_BYTES)
    app.router.add_post(PATH, _convert)
    web.run_app(app, host=ADDRESS, port=port, ssl_context=context, print=None)


if __name__ == "__main__":
    main(sys.argv[1:])
