"""Listeners: an application on a port, from the first connection to graceful shutdown.

Connections are accepted here, so that each counts from the start: one in its TLS handshake holds memory, too,
and the event loop's own server reports it only after the handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from aiohttp import web

from apiserver.log import EventLogger
from apiserver.serving.connections import Connections

if TYPE_CHECKING:
    import ssl

    from apiserver.serving.config import Limits, ServingConfig
    from apiserver.serving.connections import Guard


log = EventLogger(__name__)

_BACKLOG: Final = 1024
_READ_BYTES: Final = 32 << 10
"""The kernel's buffer of a connection, which allots twice as much. TLS reads all of it at once, into buffers
that it keeps while the connection is idle: by default, up to 0.7 MiB of memory per connection."""

_HANDSHAKE_SECONDS: Final = 10.0
_TLS_CLOSE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.1


def listening_socket(host: str, port: int) -> socket.socket:
    """Return a socket listening on `port` (0: any free one) of `host` (empty: all addresses).

    Raises `OSError` if the port is in use.
    """
    if not host and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
    addresses = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = addresses[0]
    return socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)


class Acceptor:
    """Accepts connections on a listening socket until closed."""

    def __init__(
        self, listening: socket.socket, connections: Connections, context: ssl.SSLContext | None
    ) -> None:
        listening.setblocking(False)
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _READ_BYTES)
        self._listening = listening
        self._connections = connections
        self._options: dict[str, Any] = {}
        if context:
            self._options = {
                "ssl": context,
                "ssl_handshake_timeout": _HANDSHAKE_SECONDS,
                "ssl_shutdown_timeout": _TLS_CLOSE_SECONDS,
            }
        self._accepting = asyncio.create_task(self._accept())

    @property
    def port(self) -> int:
        """The port that the socket listens on."""
        return int(self._listening.getsockname()[1])

    async def close(self) -> None:
        """Stop accepting; existing connections and ongoing handshakes continue."""
        self._accepting.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._accepting
        self._listening.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                stream, _ = await loop.sock_accept(self._listening)
            except OSError as error:  # mostly that no more files can be opened
                log.warning("connection not accepted", error=str(error))
                self._connections.make_room()
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            guard = self._connections.admit()
            if guard:
                beginning = loop.connect_accepted_socket(partial(_same, guard), stream, **self._options)
                guard.handshake = asyncio.create_task(beginning)
                guard.handshake.add_done_callback(partial(self._end_handshake, guard, stream))
            else:
                stream.close()

    def _end_handshake(self, guard: Guard, stream: socket.socket, handshake: asyncio.Task[Any]) -> None:
        """Drop a connection whose handshake failed: its client left, was too slow, or speaks other TLS."""
        guard.handshake = None
        if not handshake.cancelled():
            error = handshake.exception()
            if error is None:
                return
            if not isinstance(error, OSError):
                log.error("connection not made", error=repr(error))
        self._connections.forget(guard)
        stream.close()


def _same(guard: Guard) -> Guard:
    return guard


_HEADER_LIMIT = 512


class Listener:
    """An open port. Create it with `open`."""

    def __init__(self, runner: web.AppRunner, acceptor: Acceptor, connections: Connections) -> None:
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
        host: str,
        port: int,
        context: ssl.SSLContext | None = None,
    ) -> Self:
        """Listen on a port (0: any free one) of `host` (empty: all addresses). Raises `OSError` if in use."""
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

    def __init__(self, serving: ServingConfig, limits: Limits) -> None:
        self._serving = serving
        self._limits = limits
        self._https: Listener | None = None
        self._metrics: Listener | None = None
        self._health: Listener | None = None

    @property
    def ports(self) -> str:
        """The open ports as text: `https 9443, health 8081`."""
        listeners = {"https": self._https, "metrics": self._metrics, "health": self._health}
        return ", ".join(f"{name} {listener.port}" for name, listener in listeners.items() if listener)

    async def open_https(self, application: web.Application, context: ssl.SSLContext) -> None:
        """Open the HTTPS port."""
        self._https = await self._open(application, self._serving.port, context=context)

    async def open_plain(self, *, health: web.Application, metrics: web.Application) -> None:
        """Open the health and metrics ports."""
        self._health = await self._open(health, self._serving.health_port)
        self._metrics = await self._open(metrics, self._serving.metrics_port)

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
        self, application: web.Application, port: int, *, context: ssl.SSLContext | None = None
    ) -> Listener:
        return await Listener.open(
            application, self._limits, host=self._serving.bind_address, port=port, context=context
        )
