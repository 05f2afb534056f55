"""Tracking of all requests: they are counted and measured, and their connections closed while draining."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aiohttp import web

from apiserver.log import EventLogger
from apiserver.serving.connections import Guard
from apiserver.serving.memory import LARGE_BYTES, give_back_soon

if TYPE_CHECKING:
    from collections.abc import Callable

    from aiohttp.typedefs import Handler, Middleware

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness

log = EventLogger(__name__)

_UNMATCHED: Final = "unmatched"
_FAILED: Final = 500


def tracking(metrics: ProcessMetrics, readiness: Readiness, *, clock: Callable[[], float]) -> Middleware:
    """Return the outermost middleware of an application."""

    @web.middleware
    async def track(request: web.Request, handler: Handler) -> web.StreamResponse:
        resource = request.match_info.route.resource
        # The pattern of a route: clients must not be able to create label values.
        route = resource.canonical if resource else _UNMATCHED
        began, code = clock(), _FAILED
        protocol = request.transport.get_protocol() if request.transport else None
        guard = protocol if isinstance(protocol, Guard) else None
        if guard:
            guard.request_begun(request)
        metrics.requests_in_progress += 1
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
            metrics.requests_in_progress -= 1
            metrics.observe_request(route, request.method, code=code, seconds=clock() - began)
        if (request.content_length or 0) >= LARGE_BYTES or (response.content_length or 0) >= LARGE_BYTES:
            give_back_soon()
        if readiness.is_draining:
            response.force_close()
        return response

    return track
