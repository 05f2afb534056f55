"""Limits on what a client can hold: connections, requests it never completes, and responses it never reads.

The HTTP library closes idle connections, but waits indefinitely for the rest of a request body, and for a
client to read a response. A guard in front of its protocol records when either began on each connection; a
periodic sweep aborts those that take too long.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from aiohttp.web import BaseRequest

SWEEP_SECONDS = 2.0
_UNREAD_BYTES = 64 << 10
"""Total size of unread responses on a connection from which no more requests are read, in bytes."""

_SETTLE_STEP_SECONDS = 0.05
_SETTLE_LEAST_STEPS = 5
_SETTLE_MOST_STEPS = 20


class Connections:
    """The open connections of one listener, from the moment each is accepted.

    If there are too many, one that is not in use is closed: the oldest that has not had a response yet, else
    the one whose last response is the longest ago. So a client cannot block others by waiting, whether before
    the handshake, in the middle of a request or between two. A new connection is rejected only if all others
    are being answered.
    """

    def __init__(
        self,
        factory: Callable[[], asyncio.Protocol],
        *,
        limit: int,
        unfinished_seconds: float,
        clock: Callable[[], float],
    ) -> None:
        """Allow `limit` connections, and `unfinished_seconds` to send a request, or to read a response."""
        self.clock = clock
        self._factory = factory
        self._limit = limit
        self._unfinished_seconds = unfinished_seconds
        self._open: set[Guard] = set()
        self._unanswered: dict[Guard, None] = {}
        self._idle: dict[Guard, None] = {}

    def __len__(self) -> int:
        return len(self._open)

    def admit(self) -> Guard | None:
        """Return the protocol for a new connection; None if no room can be made for it."""
        if len(self._open) >= self._limit and not self.make_room():
            return None
        guard = Guard(self._factory(), self)
        self._open.add(guard)
        self._unanswered[guard] = None
        return guard

    def make_room(self) -> bool:
        """Abort the least useful connection; return whether there was one."""
        for waiting in (self._unanswered, self._idle):
            for guard in waiting:
                self.forget(guard)
                guard.abort()
                return True
        return False

    def occupy(self, guard: Guard) -> None:
        """Record that a complete request of a connection is being handled."""
        self._unanswered.pop(guard, None)
        self._idle.pop(guard, None)

    def rest(self, guard: Guard) -> None:
        """Record that a connection's request has been answered."""
        self.occupy(guard)
        if guard in self._open:
            self._idle[guard] = None

    def forget(self, guard: Guard) -> None:
        """Record that a connection has ended."""
        self._open.discard(guard)
        self.occupy(guard)

    def sweep(self) -> None:
        """Abort connections whose request has been incomplete, or its response unread, for too long."""
        earliest = self.clock() - self._unfinished_seconds
        for guard in [guard for guard in self._open if guard.is_unfinished_since(earliest)]:
            guard.abort()

    async def keep_sweeping(self) -> None:
        """Sweep every two seconds, until cancelled."""
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            self.sweep()

    async def settle(self, *, sleep: Callable[[float], Awaitable[None]] = asyncio.sleep) -> None:
        """Wait for the newest connections to send their first request, at most one second.

        Closing them would lose that request, since their client has just reached the server. The first
        quarter of a second is for ongoing handshakes.
        """
        for step in range(_SETTLE_MOST_STEPS):
            if step >= _SETTLE_LEAST_STEPS and not self._unanswered:
                return
            await sleep(_SETTLE_STEP_SECONDS)


class Guard(asyncio.Protocol):
    """Forwards everything to the HTTP protocol, and records when a request begins and is complete."""

    __slots__ = (
        "_busy",
        "_connections",
        "_inner",
        "_is_given_up",
        "_since",
        "_transport",
        "_unread_since",
        "handshake",
    )

    def __init__(self, inner: asyncio.Protocol, connections: Connections) -> None:
        self._inner = inner
        self._connections = connections
        self._transport: asyncio.Transport | None = None
        self._is_given_up = False
        self._busy = False
        self._since: float | None = None
        self._unread_since: float | None = None
        self.handshake: asyncio.Task[object] | None = None
        """The TLS handshake, until the connection is established."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.set_write_buffer_limits(_UNREAD_BYTES)  # over TLS, the default is eight times as much
        self._inner.connection_made(transport)
        if self._is_given_up:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._connections.forget(self)
        self._inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._since is None and not self._busy:
            self._since = self._connections.clock()
        self._inner.data_received(data)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`."""
        return self._inner.eof_received()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: from a client that does not read responses, no more requests are read."""
        self._unread_since = self._connections.clock()
        if self._transport:
            self._transport.pause_reading()
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        self._unread_since = None
        if self._transport:
            self._transport.resume_reading()
        self._inner.resume_writing()

    def request_begun(self, request: BaseRequest) -> None:
        """Record that the headers are complete; the timeout still applies to the body."""
        self._busy = True
        if self._since is None:  # its beginning arrived while another request was being answered
            self._since = self._connections.clock()
        request.content.on_eof(self._request_arrived)

    def request_ended(self) -> None:
        """Record that the request is answered, whether or not all of it was read."""
        self._busy = False
        self._since = None
        self._connections.rest(self)

    def is_unfinished_since(self, moment: float) -> bool:
        """Tell whether a request began before `moment` and is still incomplete, or a response is unread."""
        return any(since is not None and since <= moment for since in (self._since, self._unread_since))

    def abort(self) -> None:
        """Abort the connection, or cancel its handshake."""
        self._is_given_up = True
        if self._transport:
            self._transport.abort()
        elif self.handshake:
            self.handshake.cancel()

    def _request_arrived(self) -> None:
        self._since = None
        if self._busy:
            self._connections.occupy(self)
