"""Tracking of all requests: they are counted and measured, and their connections closed while draining."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from aiohttp import web

from apiserver.log import EventLogger
from apiserver.serving.bodies import ANSWER_SECONDS, Post, Posts, failure, web_response
from apiserver.serving.connections import Guard
from apiserver.serving.fast_path import FastPath
from apiserver.serving.memory import LARGE_BYTES, give_back_soon

if TYPE_CHECKING:
    import asyncio

    from aiohttp.typedefs import Handler, Middleware

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness

log = EventLogger(__name__)

_UNMATCHED = "unmatched"
_FAILED = 500

PostHandler: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.Response]]

Server: TypeAlias = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]
"""A handler of all requests."""

RequestT = TypeVar("RequestT", bound=web.BaseRequest)


class Requests:
    """The requests of one HTTPS listener."""

    def __init__(self, metrics: ProcessMetrics, readiness: Readiness, *, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._readiness = readiness
        self._clock = clock

    def middleware(self) -> Middleware:
        """Return the middleware for an application."""

        @web.middleware
        async def serve(request: web.Request, handler: Handler) -> web.StreamResponse:
            resource = request.match_info.route.resource
            # The pattern of a route: clients must not be able to create label values.
            return await self._serve(request, handler, resource.canonical if resource else _UNMATCHED)

        return serve

    def server(self, posts: Posts) -> Server:
        """Return the handler of a server without an application."""

        async def serve(request: web.BaseRequest) -> web.StreamResponse:
            found = posts.get(request.path)
            if found is None:
                return await self._serve(request, _not_found, _UNMATCHED)
            if request.method != "POST":
                return await self._serve(request, _not_allowed, _UNMATCHED)
            handler = partial(_posted, found)
            if "Expect" in request.headers:
                handler = partial(_continued, handler)
            return await self._serve(request, handler, request.path)

        return serve

    def fast_path(
        self, posts: Posts, library: Callable[[], asyncio.Protocol], *, answer_seconds: float = ANSWER_SECONDS
    ) -> FastPath:
        """Return the fast path in front of such a server, whose connections are those of `library`.

        A client has `answer_seconds` to read a response.
        """
        return FastPath(
            posts,
            library,
            answer_seconds=answer_seconds,
            metrics=self._metrics,
            readiness=self._readiness,
            clock=self._clock,
        )

    async def _serve(
        self, request: RequestT, handler: Callable[[RequestT], Awaitable[web.StreamResponse]], route: str
    ) -> web.StreamResponse:
        clock, metrics = self._clock, self._metrics
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
        if self._readiness.is_draining:
            response.force_close()
        return response


async def _posted(post: Post, request: web.BaseRequest) -> web.Response:
    # The size of a compressed body would be unbounded, and API servers compress none.
    if request.headers.get("Content-Encoding"):
        return web_response(failure(400, "compressed bodies are not supported"))
    return await post.bodies.answer(request, post.answer, limit_bytes=post.limit_bytes, times=post.times)


async def _continued(handler: PostHandler, request: web.BaseRequest) -> web.Response:
    """Tell a client that waits to send the body, as RFC 9110, section 10.1.1, requires."""
    if request.headers["Expect"].lower() != "100-continue":
        raise web.HTTPExpectationFailed
    await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
    return await handler(request)


async def _not_found(_: web.BaseRequest) -> web.Response:
    raise web.HTTPNotFound


async def _not_allowed(request: web.BaseRequest) -> web.Response:
    raise web.HTTPMethodNotAllowed(request.method, ["POST"])
