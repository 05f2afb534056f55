"""The external metrics API as an application: all requests but health checks are authenticated."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from typing import Final

from aiohttp import web

from apiserver.metrics.authentication import Gate
from apiserver.metrics.provider import MetricIndex
from apiserver.metrics.routes import Clock, Handler, routes, statuses
from apiserver.metrics.status import ServiceUnavailableError
from apiserver.serving.health import add_health_routes
from apiserver.serving.readiness import Readiness

_OPEN_PATHS: Final = frozenset(["/livez", "/readyz"])


def application(
    index: MetricIndex,
    *,
    gate: Callable[[], Gate | None],
    why_incomplete: Callable[[str], str | None],
    readiness: Readiness,
    clock: Clock,
) -> web.Application:
    """Return the application; `gate` returns the current gate, None until the front proxy is known.

    It must be served over TLS by a listener that requests client certificates.
    """

    @web.middleware
    async def authentication(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.path not in _OPEN_PATHS:
            current = gate()
            if current is None:
                raise ServiceUnavailableError(
                    "the front proxy settings of this cluster have not been read yet"
                )
            current.authenticate(peer_certificate(request), request.headers, now=clock())
        return await handler(request)

    made = web.Application(middlewares=[statuses, authentication])
    made.add_routes(routes(index, why_incomplete=why_incomplete, clock=clock))
    add_health_routes(made, readiness)
    return made


def peer_certificate(request: web.Request) -> bytes | None:
    """Return the verified client certificate (DER) of the TLS connection; None without one."""
    connection = None if request.transport is None else request.transport.get_extra_info("ssl_object")
    if not isinstance(connection, ssl.SSLObject | ssl.SSLSocket):
        return None
    return connection.getpeercert(binary_form=True)
