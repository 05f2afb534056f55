"""Bounds on what request bodies take together: while they arrive, when they are decoded, and when answered.

Anybody who reaches the port may send a body, and a decoder can make many times its size of it. Bytes are
counted as they arrive: when all bodies together hold too many, the largest one that is still arriving is
given up, or where only small ones are, the largest that waits, so that small requests always find room. A
body that has arrived whole waits in a queue until there is room for what it may come to. Small bodies, which
are nearly all, have a queue of their own, and so has each kind of request: none can keep out another one.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aiohttp import web

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

SMALL_ANSWER_BYTES: Final = 1 << 20
"""Up to which size an answer is small."""

SMALL_ROOM_BYTES: Final = 64 << 20
"""For what all small bodies of a kind of request come to at once."""

ANSWER_SECONDS: Final = 10.0
"""How long a client may take to read a large answer."""

PATIENCE_SECONDS: Final = 8.0
"""How long a body waits to be decoded: API servers wait 10 s for admission, and 30 s for conversion."""

_AGAIN: Final = {"Retry-After": "1"}


class Bodies:
    """The room for the request bodies of one kind, in bytes.

    What is larger than `small_bytes` takes its share of `large_bytes`, and then of what all kinds share.
    """

    def __init__(self, *, arriving_bytes: int, small_bytes: int, large_bytes: int, shared: Room) -> None:
        self._small_bytes = small_bytes
        self._arriving = _Arriving(arriving_bytes, small_bytes)
        self._small = Room(SMALL_ROOM_BYTES)
        self._large_bytes = large_bytes
        self._large = Room(large_bytes), shared

    @asynccontextmanager
    async def read(self, request: web.Request, *, limit_bytes: int, times: int) -> AsyncIterator[bytes]:
        """Read a body, and keep the room for `times` its size until what is made of it is done.

        Raises HTTPRequestEntityTooLarge beyond the limit, and HTTPServiceUnavailable where it is given up for
        others or finds no room in time.
        """
        body = _Body(request)
        with ExitStack() as taken:
            try:
                text = await self._arriving.read(body, limit_bytes)
                amount = min(len(text) * times, self._large_bytes)
                async with asyncio.timeout(PATIENCE_SECONDS) as body.patience:
                    for room in (self._small,) if len(text) <= self._small_bytes else self._large:
                        await room.take(amount)
                        taken.callback(room.give, amount)
            except TimeoutError:
                raise _unavailable() from None
            finally:
                self._arriving.forget(body)
            yield text


async def answered(request: web.Request, response: web.Response) -> web.Response:
    """Return an answer, a large one once it is sent: whoever does not read it in time is cut off.

    To be called while there is room for its body: what is written waits in memory for the client.
    """
    if (response.content_length or 0) <= SMALL_ANSWER_BYTES:
        return response
    try:
        async with asyncio.timeout(ANSWER_SECONDS):
            await response.prepare(request)
            await response.write_eof()
    except TimeoutError:
        if request.transport:
            request.transport.abort()
    return response


@dataclass(eq=False, slots=True)
class _Body:
    """A body that is held as text, in whole or in part."""

    request: web.Request
    held_bytes: int = 0
    patience: asyncio.Timeout | None = None
    """How long it waits for room, once it is whole."""

    def give_up(self) -> None:
        """End its request, wherever that is just now."""
        if self.patience is None:
            if self.request.transport:
                self.request.transport.abort()  # it may never send another byte
        elif not self.patience.expired():
            self.patience.reschedule(asyncio.get_running_loop().time())


class _Arriving:
    """The bodies that are held as text."""

    def __init__(self, most_bytes: int, small_bytes: int) -> None:
        self._most_bytes = most_bytes
        self._small_bytes = small_bytes
        self._total_bytes = 0
        self._held: set[_Body] = set()

    async def read(self, body: _Body, limit_bytes: int) -> bytes:
        """Return the text of a body; it counts until it is forgotten."""
        size = body.request.content_length or 0
        if size > limit_bytes:
            raise web.HTTPRequestEntityTooLarge(limit_bytes, size)
        self._held.add(body)
        return b"".join([chunk async for chunk in self._chunks(body, limit_bytes)])

    async def _chunks(self, body: _Body, limit_bytes: int) -> AsyncIterator[bytes]:
        async for chunk in body.request.content.iter_any():
            if body.held_bytes + len(chunk) > limit_bytes:
                raise web.HTTPRequestEntityTooLarge(limit_bytes, body.held_bytes + len(chunk))
            self._count(body, len(chunk))
            if body not in self._held:
                raise _unavailable()
            yield chunk

    def forget(self, body: _Body) -> None:
        """Give back the room of a body."""
        self._held.discard(body)
        self._total_bytes -= body.held_bytes
        body.held_bytes = 0

    def _count(self, body: _Body, more_bytes: int) -> None:
        """Count what has arrived; while it is too much, give up the largest body."""
        body.held_bytes += more_bytes
        self._total_bytes += more_bytes
        while self._total_bytes > self._most_bytes and self._held:
            largest = max(self._held, key=self._rank)
            self.forget(largest)
            if largest is not body:
                largest.give_up()

    def _rank(self, body: _Body) -> tuple[bool, int]:
        """Order bodies: the greatest is given up, one that is still arriving and not small before others."""
        return body.patience is None and body.held_bytes > self._small_bytes, body.held_bytes


class Room:
    """Bytes that are taken in the order of asking; what is larger than all of it takes all of it."""

    def __init__(self, most_bytes: int) -> None:
        self._most = self._free = most_bytes
        self._queue: deque[tuple[int, asyncio.Future[None]]] = deque()

    async def take(self, amount: int) -> None:
        """Wait for so much room, and take it."""
        amount = min(amount, self._most)
        if not self._queue and amount <= self._free:
            self._free -= amount
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append((amount, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self.give(amount)  # the turn came at the moment of giving up
            raise

    def give(self, amount: int) -> None:
        """Give room back, and let in who is next."""
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
