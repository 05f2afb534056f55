"""Listeners: an application on a port, from the first connection to graceful shutdown."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Self

from aiohttp import web

from apiserver.serving.accepting import Acceptor, listening_socket
from apiserver.serving.connections import Connections

if TYPE_CHECKING:
    import ssl

    from apiserver.serving.options import Limits, ServerOptions

_HEADER_LIMIT = 512


class Listener:
    """An open port. Create it with `open`."""

    def __init__(
        self,
        runner: web.AppRunner,
        acceptor: Acceptor,
        connections: Connections,
    ) -> None:
        self._runner = runner
        self._acceptor = acceptor
        self._connections = connections
        self._sweeping = asyncio.create_task(connections.keep_sweeping())

    @classmethod
    async def open(
        cls,
        application: web.Application,
        limits: Limits,
        *,
        host: str | None,
        port: int,
        context: ssl.SSLContext | None = None,
    ) -> Self:
        """Listen on a port (0: any free one) of `host` (None: all addresses). Raises `OSError` if in use."""
        runner = web.AppRunner(
            application,
            access_log=None,
            keepalive_timeout=limits.keep_alive_seconds,
            shutdown_timeout=limits.finish_seconds,
            max_headers=_HEADER_LIMIT,  # the aggregator sends one header per group of the user
            auto_decompress=False,  # no legitimate client compresses requests
        )
        await runner.setup()
        assert runner.server is not None
        connections = Connections(
            runner.server,
            limit=limits.connections,
            unfinished_seconds=limits.unfinished_request_seconds,
            clock=asyncio.get_running_loop().time,
        )
        try:
            listening = listening_socket(host, port)
        except OSError:
            await runner.cleanup()
            raise
        return cls(runner, Acceptor(listening, connections, context), connections)

    @property
    def port(self) -> int:
        """The open port."""
        return self._acceptor.port

    async def close(self, *, settle: bool = False) -> None:
        """Stop accepting, complete the requests in flight, and close the connections.

        With `settle`, requests that are still on their way are completed as well.
        """
        await self._acceptor.close()
        if settle:
            await self._connections.settle()
        await self._runner.cleanup()
        self._sweeping.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._sweeping


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

    async def open_https(self, application: web.Application, context: ssl.SSLContext) -> None:
        """Open the HTTPS port, if configured."""
        self._https = await self._open(application, self._options.port, context=context)

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
        self, application: web.Application, port: int | None, *, context: ssl.SSLContext | None = None
    ) -> Listener | None:
        if port is None:
            return None
        options = self._options
        return await Listener.open(
            application, options.limits, host=options.bind_address, port=port, context=context
        )
