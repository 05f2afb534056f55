"""Accepting of connections, each of which counts from the start: one in its TLS handshake holds memory, too.

The event loop's own server reports a connection only after its handshake.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from apiserver.log import EventLogger

if TYPE_CHECKING:
    import ssl

    from apiserver.serving.connections import Connections, Guard

log = EventLogger(__name__)

_BACKLOG: Final = 1024
_READ_BYTES: Final = 32 << 10
"""The kernel's buffer of a connection, which allots twice as much. TLS reads all of it at once, into buffers
that it keeps while the connection is idle: by default, up to 0.7 MiB of memory per connection."""

_HANDSHAKE_SECONDS: Final = 10.0
_TLS_CLOSE_SECONDS: Final = 1.0
_PAUSE_SECONDS: Final = 0.1


def listening_socket(host: str | None, port: int) -> socket.socket:
    """Return a socket listening on `port` (0: any free one) of `host` (None: all addresses).

    Raises `OSError` if the port is in use.
    """
    if host is None and socket.has_dualstack_ipv6():
        return socket.create_server(("", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True)
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, _, _, _, address = found[0]
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
                guard.handshake.add_done_callback(partial(self._begun, guard, stream))
            else:
                stream.close()

    def _begun(self, guard: Guard, stream: socket.socket, handshake: asyncio.Task[Any]) -> None:
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
