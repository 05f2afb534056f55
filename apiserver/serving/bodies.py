"""Limits on the total memory of request bodies: while they arrive, are decoded, and are answered.

Anyone who can reach the port may send a body, and decoding can multiply its size. Bytes are counted as they
arrive: when all bodies together exceed the limit, the largest one still arriving is aborted or, if only small
ones are arriving, the largest one that waits, so that small requests always find room. A complete body waits
in a queue until there is room for its decoded size. Small bodies, nearly all of them, have a queue of their
own, and so has each kind of request, so that none can block another.

After a large request, free memory is released to the operating system. glibc raises its threshold for
allocating a block by mmap, and then keeps freed memory: a process that once sent a response of fifty
megabytes would hold them for good, against its container's limit. Source: mallopt(3) and malloc_trim(3).
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import json
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from aiohttp import web

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler


SMALL_ANSWER_BYTES: Final = 64 << 10
"""The maximum size of a small response, in bytes, and that of the parts of a large one."""

ANSWER_SECONDS: Final = 10.0
"""The timeout for a client to read a large response, in seconds."""

SMALL_ROOM_BYTES: Final = 64 << 20
"""The total decoded size of concurrent small bodies of one kind of request, in bytes."""

PATIENCE_SECONDS: Final = 8.0
"""The maximum time for which a body waits to be decoded, in seconds: API servers wait 10 s for admission, and
30 s for conversion."""

_JSON: Final = "application/json"


class Reply(NamedTuple):
    """The response to a body: JSON text, and the status code."""

    body: bytes
    status: int = 200


def failure(code: int, message: str) -> Reply:
    """Return a Status as the response to a request that cannot be answered."""
    status = {"kind": "Status", "status": "Failure", "code": code, "message": message}
    return Reply(json.dumps(status).encode(), code)


Answer: TypeAlias = Callable[[bytes], Awaitable[Reply]]
"""A function that returns the response to a body."""

_AGAIN: Final = {"Retry-After": "1"}


class Bodies:
    """The memory for request bodies of one kind, in bytes.

    A body larger than `small_bytes` takes its room from `large_bytes`, and then from the room that all kinds
    share.
    """

    def __init__(self, *, arriving_bytes: int, small_bytes: int, large_bytes: int, shared: Room) -> None:
        self._small_bytes = small_bytes
        self._arriving = _Arrivals(arriving_bytes, small_bytes)
        self._small = Room(SMALL_ROOM_BYTES)
        self._large_bytes = large_bytes
        self._large = Room(large_bytes), shared

    def handler(self, answer: Answer, *, limit_bytes: int, times: int) -> Handler:
        """Return the handler of requests whose responses `answer` returns, with the arguments of `answer`."""

        async def handle(request: web.Request) -> web.StreamResponse:
            # The size of a compressed body would be unbounded, and API servers compress none.
            if request.headers.get("Content-Encoding"):
                return _response(failure(400, "compressed bodies are not supported"))
            return await self.answer(request, answer, limit_bytes=limit_bytes, times=times)

        return handle

    async def answer(
        self, request: web.BaseRequest, answer: Answer, *, limit_bytes: int, times: int
    ) -> web.StreamResponse:
        """Return the response to a request body, for which `times` its size is reserved meanwhile.

        A large response is returned only after it is sent. Raises HTTPRequestEntityTooLarge beyond the limit,
        HTTPServiceUnavailable if the body is aborted in favor of others or finds no room in time, and
        HTTPBadRequest if the client leaves before it is complete.
        """
        content = request.content
        if content.is_eof() and content.total_bytes <= min(self._small_bytes, limit_bytes):
            amount = content.total_bytes * times
            if self._small.take_at_once(amount):
                try:
                    return await _send(request, await answer(content.read_nowait()))
                finally:
                    self._small.give(amount)
        return await self._answer_in_turn(request, answer, limit_bytes=limit_bytes, times=times)

    async def _answer_in_turn(
        self, request: web.BaseRequest, answer: Answer, *, limit_bytes: int, times: int
    ) -> web.StreamResponse:
        rooms: list[Room] = []
        body, amount = _Body(request), 0
        try:
            try:
                text = await self._arriving.read(body, limit_bytes)
                amount = min(len(text) * times, self._large_bytes)
                is_small = len(text) <= self._small_bytes
                if is_small and self._small.take_at_once(amount):
                    rooms.append(self._small)
                else:
                    await _wait(body, (self._small,) if is_small else self._large, amount, rooms)
            except TimeoutError:
                raise _unavailable() from None
            except ConnectionError:  # no error of the server, and nobody reads the response
                raise web.HTTPBadRequest from None
            finally:
                self._arriving.forget(body)
            return await _send(request, await answer(text))
        finally:
            for room in rooms:
                room.give(amount)


async def _wait(body: _Body, rooms: Sequence[Room], amount: int, used: list[Room]) -> None:
    """Take bytes from rooms in turn, and note which have given them. Raises TimeoutError."""
    async with asyncio.timeout(PATIENCE_SECONDS) as body.patience:
        for room in rooms:
            await room.take(amount)
            used.append(room)


def _response(reply: Reply) -> web.Response:
    return web.Response(body=reply.body, status=reply.status, content_type=_JSON)


async def _send(request: web.BaseRequest, reply: Reply) -> web.StreamResponse:
    """Return a response, a large one only after it is sent; abort a client that does not read it in time.

    A large one is written in parts: over TLS, the event loop accepts any amount at once, which would wait in
    memory for a client that reads nothing. aiohttp keeps the last response of an idle connection, so a large
    one is no attribute of its response.
    """
    if len(reply.body) <= SMALL_ANSWER_BYTES:
        return _response(reply)
    response = web.StreamResponse(status=reply.status, headers={"Content-Type": _JSON})
    response.content_length = len(reply.body)
    parts, size = memoryview(reply.body), SMALL_ANSWER_BYTES
    try:
        with contextlib.suppress(ConnectionError):  # the client may leave before it has read all
            async with asyncio.timeout(ANSWER_SECONDS):
                await response.prepare(request)
                for start in range(0, len(parts), size):
                    await response.write(parts[start : start + size])
                await response.write_eof()
    except TimeoutError:
        if request.transport:
            request.transport.abort()
    return response


@dataclass(eq=False, slots=True)
class _Body:
    """A body that is held as bytes, in part or completely."""

    request: web.BaseRequest
    held_bytes: int = 0
    patience: asyncio.Timeout | None = None
    """The timeout of waiting for room, once the body is complete."""

    def give_up(self) -> None:
        """Abort the request in its current state."""
        if self.patience is None:
            if self.request.transport:
                self.request.transport.abort()  # it may never send another byte
        elif not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class _Arrivals:
    """All bodies that are held as bytes."""

    def __init__(self, most_bytes: int, small_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._small_bytes = small_bytes
        self._total_bytes = 0
        self._held: set[_Body] = set()

    async def read(self, body: _Body, limit_bytes: int) -> bytes:
        """Return the bytes of a body, which count until `forget` is called."""
        size = body.request.content_length or 0
        if size > limit_bytes:
            raise web.HTTPRequestEntityTooLarge(limit_bytes, size)
        self._held.add(body)
        chunks = []
        while chunk := await body.request.content.readany():
            if body.held_bytes + len(chunk) > limit_bytes:
                raise web.HTTPRequestEntityTooLarge(limit_bytes, body.held_bytes + len(chunk))
            self._count(body, len(chunk))
            if body not in self._held:
                raise _unavailable()
            chunks.append(chunk)
        return b"".join(chunks)

    def forget(self, body: _Body) -> None:
        """Release the room of a body."""
        self._held.discard(body)
        self._total_bytes -= body.held_bytes
        body.held_bytes = 0

    def _count(self, body: _Body, more_bytes: int) -> None:
        """Count arrived bytes; while the total exceeds the limit, abort the largest body."""
        body.held_bytes += more_bytes
        self._total_bytes += more_bytes
        while self._total_bytes > self._most_bytes and self._held:
            largest = max(self._held, key=self._rank)
            self.forget(largest)
            if largest is not body:
                largest.give_up()

    def _rank(self, body: _Body) -> tuple[bool, int]:
        """Return the sort key of a body: the greatest is aborted, with large ones still arriving first."""
        return body.patience is None and body.held_bytes > self._small_bytes, body.held_bytes


class Room:
    """A first-in, first-out semaphore of bytes. A request larger than the total takes the total."""

    def __init__(self, most_bytes: int) -> None:
        self._most = self._free = most_bytes
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    def take_at_once(self, amount: int) -> bool:
        """Take `amount` bytes if they are free and there are no waiters; return whether they are taken."""
        amount = min(amount, self._most)
        if self._queue or amount > self._free:
            return False
        self._free -= amount
        return True

    async def take(self, amount: int) -> None:
        """Wait until `amount` bytes are free, and take them."""
        if self.take_at_once(amount):
            return
        amount = min(amount, self._most)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(amount)  # granted at the moment of cancellation
            raise

    def give(self, amount: int) -> None:
        """Release bytes, and wake the next waiters."""
        self._free += min(amount, self._most)
        while self._queue:
            amount, turn = self._queue[0]
            if not turn.done() and amount > self._free:
                return
            self._queue.popleft()
            if not turn.done():
                self._free -= amount
                turn.set_result(None)


def _unavailable() -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(headers=_AGAIN, text="too many requests are being read: try again\n")


LARGE_BYTES: Final = 1 << 20
"""The size of a request or response from which releasing memory is worthwhile, in bytes."""

_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
_BLOCK_BYTES: Final = 1 << 20
_AFTER_SECONDS: Final = 0.5


def ask_for_blocks() -> None:
    """Make every large allocation a separate block, which is released when freed."""
    library = _glibc()
    if library is not None:
        library.mallopt(_MMAP_THRESHOLD, _BLOCK_BYTES)
        library.mallopt(_TRIM_THRESHOLD, _BLOCK_BYTES)


def give_back_soon() -> None:
    """Release free memory to the operating system once the current response is being sent."""
    library = _glibc()
    if library is not None:
        asyncio.get_running_loop().call_later(_AFTER_SECONDS, library.malloc_trim, 0)


def _glibc() -> ctypes.CDLL | None:
    library = ctypes.CDLL(None)
    return library if hasattr(library, "malloc_trim") and hasattr(library, "mallopt") else None
