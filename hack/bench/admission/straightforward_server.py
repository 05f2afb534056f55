"""`python -m hack.bench.admission.straightforward_server DIRECTORY PORT`: the straightforward way, served.

Plain aiohttp on asyncio's own loop, TLS with `tls.crt` and `tls.key` of the directory.
"""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

from apiserver.kinds.registry import KINDS
from hack.bench.admission.straightforward import Straightforward, Verb
from hack.bench.aiohttp_server import serve


def application(admission: Straightforward) -> web.Application:
    """Return the application with `/mutate` and `/validate`."""
    app = web.Application()
    app.router.add_post("/mutate", _handler(admission, "mutate"))
    app.router.add_post("/validate", _handler(admission, "validate"))
    return app


def _handler(admission: Straightforward, verb: Verb) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        return web.json_response(admission.respond(verb, await request.json()))

    return handle


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    serve(application(Straightforward(KINDS)), arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
