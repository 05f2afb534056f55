"""Listeners: an application on a port, from the first connection to graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Self

from aiohttp import web

from apiserver.serving.accepting import Acceptor, listening_socket
from apiserver.serving.connections import Connections

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from apiserver.serving.bodies import Posts
    from apiserver.serving.fast_path import FastPath
    from apiserver.serving.options import Limits, ServerOptions
    from apiserver.serving.requests import Requests, Server

_HEADER_LIMIT = 512


class Listener:
    """An open port. Create it with `open`."""

    def __init__(
        self,
        runner: web.BaseRunner,
        acceptor: Acceptor,
        connections: Connections,
        fast_path: FastPath | None,
        limits: Limits,
    ) -> None:
        self._runner = runner
        self._acceptor = acceptor
        self._connections = connections
        self._fast_path = fast_path
        self._limits = limits
        self._sweeping = asyncio.create_task(connections.keep_sweeping())

    @classmethod
    async def open(
        cls,
        application: web.Application | Server,
        limits: Limits,
        *,
        host: str | None,
        port: int,
        context: ssl.SSLContext | None = None,
        fast_path: Callable[[web.Server], FastPath] | None = None,
    ) -> Self:
        """Listen on a port (0: any free one) of `host` (None: all addresses). Raises `OSError` if in use.

        `fast_path` returns the fast path in front of the HTTP library's server, if there is one.
        """
        runner = _runner_of(application, limits)
        await runner.setup()
        assert runner.server is not None
        fast = fast_path(runner.server) if fast_path else None
        connections = Connections(
            fast or runner.server,
            limit=limits.connections,
            unfinished_seconds=limits.unfinished_request_seconds,
            idle_seconds=limits.keep_alive_seconds,
            clock=asyncio.get_running_loop().time,
        )
        try:
            listening = listening_socket(host, port)
        except OSError:
            await runner.cleanup()
            raise
        return cls(runner, Acceptor(listening, connections, context), connections, fast, limits)

    @property
    def port(self) -> int:
        """The open port."""
        return self._acceptor.port

    async def close(self, *, settle: bool = False) -> None:
        """Stop accepting, complete the requests in flight, and close the connections.

        With `settle`, requests that are still on their way are completed as well.
        """
        await self._acceptor.close()
        if self._fast_path:
            self._fast_path.leave()
        if settle:
            await self._connections.settle()
        ending = [self._runner.cleanup()]
        if self._fast_path:
            ending.append(self._fast_path.close(within_seconds=self._limits.finish_seconds))
        await asyncio.gather(*ending)
        self._sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeping


def _runner_of(application: web.Application | Server, limits: Limits) -> web.BaseRunner:
    options: dict[str, Any] = {
        "access_log": None,
        "keepalive_timeout": limits.keep_alive_seconds,
        "max_headers": _HEADER_LIMIT,  # the aggregator sends one header per group of the user
        "auto_decompress": False,  # no legitimate client compresses requests
    }
    if isinstance(application, web.Application):
        return web.AppRunner(application, shutdown_timeout=limits.finish_seconds, **options)
    return web.ServerRunner(web.Server(application, **options), shutdown_timeout=limits.finish_seconds)


class ProcessListeners:
    """The listeners of one process: HTTPS for its application, plain HTTP for health and metrics."""

    def __init__(self, options: ServerOptions) -> None:
        self._options = options
        self._https: Listener | None = None
        self._metrics: Listener | None = None
        self._health: Listener | None = None

    @property
    def ports(self) -> str:
        """The open ports as text: `https 9443, health 8081`."""
        named = {"https": self._https, "metrics": self._metrics, "health": self._health}
        return ", ".join(f"{name} {listener.port}" for name, listener in named.items() if listener)

    async def open_https(
        self, application: web.Application | Posts, requests: Requests, context: ssl.SSLContext
    ) -> None:
        """Open the HTTPS port, if configured."""
        if isinstance(application, web.Application):
            application.middlewares.insert(0, requests.middleware())
            self._https = await self._open(application, self._options.port, context=context)
        else:
            self._https = await self._open(
                requests.server(application),
                self._options.port,
                context=context,
                fast_path=partial(requests.fast_path, application),
            )

    async def open_plain(self, *, health: web.Application, metrics: web.Application) -> None:
        """Open the health and metrics ports, if configured."""
        self._health = await self._open(health, self._options.health_port)
        self._metrics = await self._open(metrics, self._options.metrics_port)

    async def close_https(self) -> None:
        """Close the HTTPS port after completing requests in flight."""
        if self._https:
            await self._https.close(settle=True)
            self._https = None

    async def close_all(self) -> None:
        """Close all open ports."""
        await self.close_https()
        for listener in (self._metrics, self._health):
            if listener:
                await listener.close()

    async def _open(
        self,
        application: web.Application | Server,
        port: int | None,
        *,
        context: ssl.SSLContext | None = None,
        fast_path: Callable[[web.Server], FastPath] | None = None,
    ) -> Listener | None:
        if port is None:
            return None
        options = self._options
        return await Listener.open(
            application,
            options.limits,
            host=options.bind_address,
            port=port,
            context=context,
            fast_path=fast_path,
        )
