"""The middleware of all requests: tracks, counts and measures them, and closes connections while draining."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from apiserver.serving.connections import Guard
from apiserver.serving.logger import EventLogger
from apiserver.serving.memory import LARGE_BYTES, give_back_soon

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.typedefs import Handler, Middleware

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness

log = EventLogger(__name__)

_UNMATCHED = "unmatched"
_FAILED = 500


def request_middleware(
    metrics: ProcessMetrics, readiness: Readiness, *, clock: Callable[[], float]
) -> Middleware:
    """Return the middleware for an application."""

    @web.middleware
    async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
        began, code = clock(), _FAILED
        guard = _guard_of(request)
        if guard:
            guard.request_begun(request)
        metrics.requests_in_progress.inc()
        try:
            response = await handler(request)
            code = response.status
        except web.HTTPException as answer:
            code = answer.status
            # aiohttp keeps the last response of an idle connection, and an exception keeps its frames.
            response = web.Response(
                status=code, reason=answer.reason, headers=answer.headers, body=answer.body
            )
        except Exception:  # the boundary of a request: logged in full, answered without internals
            log.exception("request failed", method=request.method, path=request.path)
            response = web.Response(status=_FAILED, text="internal error: see the server's log\n")
        finally:
            if guard:
                guard.request_ended()
            metrics.requests_in_progress.dec()
            metrics.observe_request(_route(request), request.method, code=code, seconds=clock() - began)
        if _is_large(request, response):
            give_back_soon()
        if readiness.is_draining:
            response.force_close()
        return response

    return serve


def _is_large(request: web.Request, response: web.StreamResponse) -> bool:
    return max(request.content_length or 0, response.content_length or 0) >= LARGE_BYTES


def _guard_of(request: web.Request) -> Guard | None:
    protocol = request.transport.get_protocol() if request.transport else None
    return protocol if isinstance(protocol, Guard) else None


def _route(request: web.Request) -> str:
    """Return the pattern of the route: clients must not be able to create label values."""
    resource = request.match_info.route.resource
    return resource.canonical if resource else _UNMATCHED
