"""The fast path: small POST requests in the form that API servers send are answered without the HTTP library.

The library takes about three times the CPU that an unchanged object takes to review. Anything unusual is left
to it, for the rest of the connection: other methods and paths, bodies that are large, chunked or compressed,
pipelined requests, and every request while the process drains. No request is rejected here.

Requests that arrive together are all read, then all answered, then all responses are written. One after the
other would take a third more CPU, because the code of TLS and that of an answer evict each other from caches.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from apiserver.log import EventLogger
from apiserver.serving.bodies import Post, Posts, Reply, failure
from apiserver.serving.connections import Guard
from apiserver.serving.usual_http import response, usual_request

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from apiserver.serving.process_metrics import ProcessMetrics
    from apiserver.serving.readiness import Readiness

log = EventLogger(__name__)

MOST_HEAD_BYTES: Final = 2048
"""The size up to which the head of a request is read here: the HTTP library's limits cannot be reached."""

MOST_BODY_BYTES: Final = 64 << 10
"""The size up to which a body is read here."""

MOST_ARRIVING_BYTES: Final = 8 << 20
"""The total size of incomplete requests that are held here. The HTTP library's are counted by `Bodies`."""

MOST_TOGETHER_BYTES: Final = 128 << 10
"""The total size from which requests are not kept for others that may have arrived. All of them wait for the
last one: with reviews of Models of 9 KB, up to three milliseconds."""

_CANCEL_SECONDS: Final = 1.0
"""How long a cancelled request may take to end."""

_FAULT: Final = failure(500, "internal error: see the server's log")


class _Head(NamedTuple):
    """The head of a request in the usual form."""

    path: str
    post: Post
    size: int
    """The size of the head in bytes."""
    until: int
    """The size of the whole request in bytes."""


class _Request(NamedTuple):
    """A complete request, and when it was complete."""

    connection: FastConnection
    head: _Head
    body: bytes
    since: float


class FastPath:
    """The fast path of one listener. Calling it returns the protocol for a new connection."""

    def __init__(
        self,
        posts: Posts,
        library: Callable[[], asyncio.Protocol],
        *,
        answer_seconds: float,
        metrics: ProcessMetrics,
        readiness: Readiness,
        clock: Callable[[], float],
    ) -> None:
        """`library` returns the HTTP library's protocol for a connection that leaves the fast path."""
        self.library = library
        self.answer_seconds = answer_seconds
        self.metrics = metrics
        self.clock = clock
        self.connections: set[FastConnection] = set()
        """The open connections that have not left the fast path."""
        self.in_flight: dict[FastConnection, asyncio.Future[Reply] | None] = {}
        """The connections with a complete request, and the tasks of those that are not answered at once."""
        self.arriving_bytes = 0
        self._due: list[_Request] = []
        """The complete requests that are answered after what has arrived is read."""
        self._due_bytes = 0
        self._posts = posts
        self._readiness = readiness
        self.is_closed = False

    def __call__(self) -> FastConnection:
        """Return the protocol for a new connection."""
        return FastConnection(self)

    @property
    def is_open(self) -> bool:
        """Whether requests are answered here; the HTTP library answers them while the process drains."""
        return not (self.is_closed or self._readiness.is_draining)

    def head(self, data: bytes) -> _Head | None:
        """Return the head of a request; None unless it is complete and has the usual form."""
        end = data.find(b"\r\n\r\n", 0, MOST_HEAD_BYTES)
        found = None if end < 0 else usual_request(data[:end])
        if found is None:
            return None
        path, length = found
        post = self._posts.get(path)
        if post is None or length > min(MOST_BODY_BYTES, post.most_small_bytes):
            return None
        return _Head(path, post, end + 4, end + 4 + length)

    def answer(self, request: _Request) -> None:
        """Answer a request together with the others that have arrived, after they are read."""
        self.metrics.requests_in_progress += 1
        self.in_flight[request.connection] = None
        if not self._due:
            asyncio.get_running_loop().call_soon(self.answer_due)
        self._due.append(request)
        self._due_bytes += request.head.until
        if self._due_bytes >= MOST_TOGETHER_BYTES:
            self.answer_due()

    def answer_due(self) -> None:
        """Answer all complete requests that have not been answered."""
        due, self._due, self._due_bytes = self._due, [], 0
        for request, answered in [(request, _answered(request)) for request in due]:
            if isinstance(answered, Reply):
                request.connection.reply(request, answered)
            else:
                work = self.in_flight[request.connection] = asyncio.ensure_future(answered)
                work.add_done_callback(partial(_reply_later, request))

    def leave(self) -> None:
        """Leave all connections that are not in use to the HTTP library, and answer no more requests here."""
        self.is_closed = True
        for connection in [*self.connections]:
            connection.leave_unless_in_use()

    async def close(self, *, within_seconds: float) -> None:
        """Wait for the requests that are being answered, after `leave`, and abort them in the end."""
        for connection, work in self.in_flight.items():
            if work and connection not in self.connections:
                work.cancel()  # its client has gone
        if begun := [work for work in self.in_flight.values() if work]:
            await asyncio.wait(begun, timeout=within_seconds)
        if late := [work for work in self.in_flight.values() if work]:
            for connection in self.in_flight:
                connection.abort()
            await asyncio.wait(late, timeout=_CANCEL_SECONDS)


class FastConnection(asyncio.Protocol):
    """One connection, and the HTTP library's protocol once it has left the fast path."""

    __slots__ = ("_arrived", "_guard", "_head", "_library", "_path", "_stalled", "_transport")

    def __init__(self, path: FastPath) -> None:
        self._path = path
        self._arrived = bytearray()
        """The beginning of a request, or what arrived while one is being answered."""
        self._head: _Head | None = None
        """The head of a request whose body is arriving."""
        self._library: asyncio.Protocol | None = None
        self._stalled: asyncio.TimerHandle | None = None
        """The timeout of a client that does not read its response."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        self._transport = cast("asyncio.Transport", transport)
        guard = transport.get_protocol()
        assert isinstance(guard, Guard)
        self._guard = guard
        self._path.connections.add(self)
        if not self._path.is_open:
            self._leave()

    def connection_lost(self, exc: Exception | None) -> None:
        """See `asyncio.Protocol`."""
        self._path.connections.discard(self)
        if self._path.is_closed:
            self._cancel()
        self._taken()
        self._end_stall()
        if self._library is not None:
            self._library.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """See `asyncio.Protocol`."""
        if self._library is not None:
            self._library.data_received(data)
        elif self in self._path.in_flight:
            self._read_pipelined(data)
        elif self._head is None:
            self._read(data, self._path.head(data))
        else:
            self._hold(data)
            if len(self._arrived) >= self._head.until or self._path.arriving_bytes > MOST_ARRIVING_BYTES:
                self._read(self._taken(), self._head)

    def eof_received(self) -> bool | None:
        """See `asyncio.Protocol`. TLS sends nothing after this."""
        if self in self._path.in_flight:
            self._path.answer_due()
        return None if self._library is None else self._library.eof_received()

    def pause_writing(self) -> None:
        """See `asyncio.Protocol`: a client that does not read its response gets no other one."""
        if self._library is not None:
            self._library.pause_writing()
        else:
            self._transport.pause_reading()
            loop = asyncio.get_running_loop()
            self._stalled = loop.call_later(self._path.answer_seconds, self._transport.abort)

    def resume_writing(self) -> None:
        """See `asyncio.Protocol`."""
        if self._library is not None:
            self._library.resume_writing()
        else:
            self._end_stall()
            self._transport.resume_reading()

    def leave_unless_in_use(self) -> None:
        """Leave the connection to the HTTP library, unless it has a complete request."""
        if self not in self._path.in_flight:
            self._leave(self._taken())

    def abort(self) -> None:
        """Cancel the request that is in flight, and abort the connection."""
        self._cancel()
        self._transport.abort()

    def _cancel(self) -> None:
        if work := self._path.in_flight.get(self):
            work.cancel()

    def _read_pipelined(self, data: bytes) -> None:
        """Hold one read that arrives while a request is being answered; API servers do not send this."""
        if self._path.arriving_bytes + len(data) > MOST_ARRIVING_BYTES:
            self._transport.abort()
        else:
            self._hold(data)
            self._transport.pause_reading()

    def _read(self, data: bytes, head: _Head | None) -> None:
        """Answer a request that is complete, wait for more of it, or leave it to the HTTP library."""
        self._head = None
        path = self._path
        if head is None or len(data) > head.until or not path.is_open:
            self._leave(data)
        elif len(data) < head.until:
            if path.arriving_bytes + len(data) > MOST_ARRIVING_BYTES:
                self._leave(data)
            else:
                self._head = head
                self._hold(data)
        elif head.post.bodies.small.take_at_once((head.until - head.size) * head.post.times):
            self._guard.request_complete()
            path.answer(_Request(self, head, data[head.size :], path.clock()))
        else:
            self._leave(data)

    def reply(self, request: _Request, reply: Reply) -> None:
        """Send the reply to a request. If that fails, the connection is aborted."""
        path, head = self._path, request.head
        del path.in_flight[self]
        head.post.bodies.small.give((head.until - head.size) * head.post.times)
        path.metrics.requests_in_progress -= 1
        seconds = path.clock() - request.since
        path.metrics.observe_request(head.path, "POST", code=reply.status, seconds=seconds)
        self._guard.request_ended()
        try:
            self._send(reply)
        except Exception:  # the boundary of a connection: others are answered
            log.exception("connection failed", path=head.path)
            self._transport.abort()

    def _send(self, reply: Reply) -> None:
        path, transport = self._path, self._transport
        if transport.is_closing():
            return
        is_last = path.is_closed or not (path.is_open or self._arrived)
        transport.write(response(reply, is_last=is_last))
        if is_last:
            transport.close()
        elif self._arrived:
            self._leave(self._taken())

    def _leave(self, data: bytes = b"") -> None:
        """Leave the connection to the HTTP library, with data that it has to read."""
        self._path.connections.discard(self)
        self._library = self._path.library()
        self._library.connection_made(self._transport)
        if self._end_stall():
            self._library.pause_writing()
        self._transport.resume_reading()
        if data:
            self._library.data_received(data)

    def _end_stall(self) -> bool:
        """Cancel the timeout of a client that does not read; return whether there was one."""
        stalled, self._stalled = self._stalled, None
        if stalled is not None:
            stalled.cancel()
        return stalled is not None

    def _hold(self, data: bytes) -> None:
        self._arrived += data
        self._path.arriving_bytes += len(data)

    def _taken(self) -> bytes:
        """Return what has been held, and hold it no longer."""
        data = bytes(self._arrived)
        self._path.arriving_bytes -= len(data)
        self._arrived.clear()
        return data


def _answered(request: _Request) -> Reply | Awaitable[Reply]:
    head = request.head
    try:
        return head.post.answer(request.body)
    except Exception:  # the boundary of a request: logged in full, answered without internals
        log.exception("request failed", method="POST", path=head.path)
        return _FAULT


def _reply_later(request: _Request, work: asyncio.Future[Reply]) -> None:
    reply = _FAULT
    if not work.cancelled():
        if error := work.exception():
            log.error("request failed", method="POST", path=request.head.path, exc_info=error)
        else:
            reply = work.result()
    request.connection.reply(request, reply)
