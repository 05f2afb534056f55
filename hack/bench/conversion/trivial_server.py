"""`python -m hack.bench.conversion.trivial_server DIRECTORY PORT`: changes `apiVersion`, nothing else.

The least that a converter can do, on the same library and loop as ours. An API server does not validate what
it reads, so it takes even the answers that are invalid in the version that it asked for.
"""

from __future__ import annotations

import sys
from typing import Any, Final

import msgspec
from aiohttp import web

from hack.bench.aiohttp_server import serve_on_uvloop
from hack.bench.conversion.reviews import PATH

_LIMIT_BYTES: Final = 64 << 20
_review: Final = msgspec.json.Decoder(dict[str, Any])
_encode: Final = msgspec.json.Encoder().encode


async def _convert(request: web.Request) -> web.Response:
    return web.Response(body=answer(await request.read()), content_type="application/json")


def answer(body: bytes) -> bytes:
    """Return the answer to a review, bytes to bytes."""
    request = _review.decode(body)["request"]
    version = {"apiVersion": request["desiredAPIVersion"]}
    values = [value | version for value in request["objects"]]
    response = {"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": values}
    return _encode(
        {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response}
    )


def main(arguments: list[str]) -> None:
    """Serve until SIGTERM."""
    app = web.Application(client_max_size=_LIMIT_BYTES)
    app.router.add_post(PATH, _convert)
    serve_on_uvloop(app, arguments)


if __name__ == "__main__":
    main(sys.argv[1:])
