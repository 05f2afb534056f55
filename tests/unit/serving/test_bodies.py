"""Memory limits for request bodies: eviction of the largest unfinished one, and decoding in turn."""

from __future__ import annotations

import asyncio
import gc
import logging
import weakref
from typing import TYPE_CHECKING, Final

import pytest
from aiohttp import StreamReader, web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import RawTestServer, make_mocked_request
from support.posting import client_of

from apiserver.serving.bodies import Answer, Bodies, Reply, Room
from apiserver.serving.config import Limits
from apiserver.serving.listener import Listener

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from aiohttp.typedefs import Handler

UNIT: Final = 1 << 16
SMALL_BYTES: Final = 16 * UNIT
ARRIVING, DECODED, LIMIT = 256 * UNIT, 64 * UNIT, 192 * UNIT
PATIENCE_SECONDS = 60


class Served:
    """A server that holds requests until released, and records the body sizes of those held."""

    def __init__(self) -> None:
        self.held: list[int] = []
        self.entered = asyncio.Condition()
        self.let_go = asyncio.Event()
        self._bodies = Bodies(
            arriving_bytes=ARRIVING, small_bytes=SMALL_BYTES, large_bytes=DECODED, shared=Room(DECODED)
        )

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Respond with the size of the body, whose decoded size is the path times as large."""
        times = int(request.path.removeprefix("/"))
        return await self._bodies.answer(request, self._answer, limit_bytes=LIMIT, times=times)

    async def _answer(self, body: bytes) -> Reply:
        async with self.entered:
            self.held.append(len(body))
            self.entered.notify_all()
        await self.let_go.wait()
        return Reply(b"%d" % len(body))


@pytest.fixture
async def served() -> Served:
    """Return a server without held requests."""
    return Served()


@pytest.fixture
async def server(served: Served) -> AsyncIterator[RawTestServer]:
    """Run the server on a loopback address."""
    started = RawTestServer(served.handle)
    async with started:
        yield started


class Sender:
    """A client that sends a body in parts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def send(self, size: int) -> None:
        """Send this many bytes of the body."""
        self._writer.write(b"x" * size)
        await self._writer.drain()

    async def status(self) -> int:
        """Return the status code of the response; 0 if the connection was closed instead."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            try:
                line = await self._reader.readline()
            except ConnectionError:
                return 0
        return int(line.split()[1]) if line else 0

    def close(self) -> None:
        """Close the connection."""
        self._writer.close()


async def begun(server: RawTestServer, size: int, times: int = 0) -> Sender:
    """Send the headers of a request with a body of this size."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    head = f"POST /{times} HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\n"
    writer.write(head.encode())
    return Sender(reader, writer)


async def test_a_body_over_the_limit_is_rejected_by_its_content_length(server: RawTestServer) -> None:
    """No part of the body is read."""
    sender = await begun(server, LIMIT + 1)

    assert await sender.status() == web.HTTPRequestEntityTooLarge.status_code
    sender.close()


async def test_the_largest_unfinished_body_is_dropped_if_memory_is_exhausted(
    served: Served, server: RawTestServer
) -> None:
    """Requests with less received data get responses, even one that starts when no memory is left."""
    served.let_go.set()
    stalled = [await begun(server, LIMIT) for _ in range(2)]
    await stalled[0].send(160 * UNIT)
    await stalled[1].send(80 * UNIT)
    small = [await begun(server, 32 * UNIT) for _ in range(3)]
    for sender in small:
        await sender.send(32 * UNIT)

    assert [await sender.status() for sender in small] == [200, 200, 200]
    assert await stalled[0].status() in {0, 503}
    await stalled[1].send(LIMIT - 80 * UNIT)
    assert await stalled[1].status() == web.HTTPOk.status_code
    for sender in (*stalled, *small):
        sender.close()


async def test_large_bodies_are_decoded_in_turn_and_small_ones_in_parallel(
    served: Served, server: RawTestServer
) -> None:
    """A body counts with its maximum decoded size until its request is finished."""
    sizes = [20 * UNIT, 24 * UNIT, UNIT]
    senders = [await begun(server, size, times=2) for size in sizes]
    for sender, size in zip(senders, sizes, strict=True):
        await sender.send(size)
    async with asyncio.timeout(PATIENCE_SECONDS), served.entered:
        await served.entered.wait_for(lambda: UNIT in served.held and len(served.held) > 1)
    held = served.held[:]
    served.let_go.set()

    assert [await sender.status() for sender in senders] == [200, 200, 200]
    assert len(held) == 2
    for sender in senders:
        sender.close()


async def test_a_body_whose_decoded_size_exceeds_the_memory_is_decoded_alone(
    served: Served, server: RawTestServer
) -> None:
    """It waits for all others, and others wait for it."""
    served.let_go.set()
    senders = [await begun(server, 32 * UNIT, times=times) for times in (1, 100, 1)]
    for sender in senders:
        await sender.send(32 * UNIT)

    assert [await sender.status() for sender in senders] == [200, 200, 200]
    for sender in senders:
        sender.close()


def text_of(response: web.StreamResponse) -> str:
    """Return the body of a small response."""
    assert isinstance(response, web.Response)
    return response.text or ""


def whole(size: int) -> web.Request:
    """Return a request whose body has been received completely."""
    payload = StreamReader(BaseProtocol(asyncio.get_running_loop()), limit=size)
    payload.feed_data(b"x" * size)
    payload.feed_eof()
    return make_mocked_request("POST", "/", payload=payload)


def nearly_whole(size: int) -> web.Request:
    """Return a request whose body has been received, but whose end arrives later."""
    loop = asyncio.get_running_loop()
    protocol = BaseProtocol(loop)
    protocol.connection_made(asyncio.Transport())
    payload = StreamReader(protocol, limit=size)
    payload.feed_data(b"x" * size)
    loop.call_soon(payload.feed_eof)
    return make_mocked_request("POST", "/", payload=payload)


@pytest.mark.parametrize(
    ("small", "rejected"),
    [
        pytest.param(whole, 0, id="they arrive at once"),
        pytest.param(nearly_whole, 128 * UNIT, id="they arrive in parts"),
    ],
)
async def test_small_bodies_are_read_while_large_complete_ones_wait_for_decoding(
    small: Callable[[int], web.Request], rejected: int
) -> None:
    """Only small ones that arrive in parts need memory: the largest waiting body is rejected for them."""
    bodies = Bodies(
        arriving_bytes=ARRIVING, small_bytes=SMALL_BYTES, large_bytes=DECODED, shared=Room(DECODED)
    )
    let_go = asyncio.Event()

    async def answer(body: bytes) -> Reply:
        if len(body) > SMALL_BYTES:
            await let_go.wait()
        return Reply(b"%d" % len(body))

    async def read(size: int) -> int:
        request = small(size) if size == SMALL_BYTES else whole(size)
        response = await bodies.answer(request, answer, limit_bytes=LIMIT, times=64)
        return int(text_of(response))

    sizes = (64 * UNIT, 120 * UNIT, 128 * UNIT, *[SMALL_BYTES] * 3)
    async with asyncio.timeout(PATIENCE_SECONDS):
        reading = asyncio.gather(*map(read, sizes), return_exceptions=True)
        for _ in range(3):
            await asyncio.sleep(0)  # each has run until it has to wait
        let_go.set()
        came = await reading

    for size, outcome in zip(sizes, came, strict=True):
        if size == rejected:
            assert isinstance(outcome, web.HTTPServiceUnavailable)
        else:
            assert outcome == size


async def test_one_kind_of_request_cannot_use_all_memory() -> None:
    """A share remains for the other kind, however large the bodies are."""
    shared = Room(DECODED)
    one, other = (
        Bodies(arriving_bytes=ARRIVING, small_bytes=SMALL_BYTES, large_bytes=share, shared=shared)
        for share in (DECODED // 2, DECODED)
    )

    async def answer_other(_: bytes) -> Reply:
        """Answer a request of the other kind, while the first one holds its room."""
        body = whole(DECODED // 2)
        answered = await other.answer(body, answer_with_size, limit_bytes=LIMIT, times=1)
        return Reply(text_of(answered).encode())

    async with asyncio.timeout(PATIENCE_SECONDS):
        response = await one.answer(whole(64 * UNIT), answer_other, limit_bytes=LIMIT, times=64)
    assert text_of(response) == str(DECODED // 2)


async def answer_with_size(body: bytes) -> Reply:
    """Respond with the size of a body."""
    return Reply(b"%d" % len(body))


async def test_a_closed_connection_releases_its_memory(served: Served, server: RawTestServer) -> None:
    """A later body of the maximum size is accepted."""
    served.let_go.set()
    for _ in range(8):
        gone = await begun(server, LIMIT)
        await gone.send(96 * UNIT)
        gone.close()
    sender = await begun(server, LIMIT)
    await sender.send(LIMIT)

    assert await sender.status() == web.HTTPOk.status_code
    sender.close()


@pytest.mark.parametrize(
    ("size", "response_bytes"),
    [
        pytest.param(2, 1, id="before the body is complete"),
        pytest.param(1, 64 << 20, id="before the response is read"),
    ],
)
async def test_a_client_that_leaves_is_no_error(
    size: int, response_bytes: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Each of two requests ends without a message."""
    bodies = Bodies(
        arriving_bytes=ARRIVING, small_bytes=SMALL_BYTES, large_bytes=DECODED, shared=Room(DECODED)
    )
    ended: asyncio.Queue[web.StreamResponse | Exception] = asyncio.Queue()

    async def answer(_: bytes) -> Reply:
        return Reply(b"x" * response_bytes)

    @web.middleware
    async def note(request: web.Request, handler: Handler) -> web.StreamResponse:
        try:
            response = await handler(request)
        except Exception as error:
            ended.put_nowait(error)
            raise
        ended.put_nowait(response)
        return response

    app = web.Application(middlewares=[note])
    app.router.add_post("/1", bodies.handler(answer, limit_bytes=LIMIT, times=1))
    listener = await Listener.open(app, Limits(), host="127.0.0.1", port=0)
    try:
        for _ in range(2):
            reader, writer = await asyncio.open_connection("127.0.0.1", listener.port)
            writer.write(f"POST /1 HTTP/1.1\r\nHost: h\r\nContent-Length: {size}\r\n\r\nx".encode())
            await writer.drain()
            if size == 1:
                await reader.readexactly(1)
            writer.transport.abort()
            async with asyncio.timeout(PATIENCE_SECONDS):
                await ended.get()
    finally:
        await listener.close()

    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


class Held:
    """An object in a local variable of a handler, such as the body of a request."""


def application(answer: Answer) -> web.Application:
    """Return an application with one route, `/known`."""
    bodies = Bodies(arriving_bytes=4 << 20, small_bytes=1 << 20, large_bytes=2 << 20, shared=Room(2 << 20))
    made = web.Application()
    made.router.add_post("/known", bodies.handler(answer, limit_bytes=2 << 20, times=1))
    return made


async def test_a_rejected_request_holds_no_memory_while_its_connection_is_idle() -> None:
    """Otherwise many clients with one rejected request each could exhaust the memory."""
    held: list[weakref.ref[Held]] = []

    async def refuse(_: bytes) -> Reply:
        local = Held()
        held.append(weakref.ref(local))
        raise web.HTTPServiceUnavailable(headers={"Retry-After": "1"}, text="later\n")

    async with client_of(application(refuse)) as client:
        async with client.post("/known") as response:
            assert (response.status, response.headers["Retry-After"]) == (503, "1")
            assert await response.text() == "later\n"
        gc.collect()
        assert [found() for found in held] == [None]
