"""Limits on connections and on the duration of unfinished requests."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from apiserver.serving.connections import Connections, Guard
from apiserver.serving.listener import Acceptor, listening_socket
from apiserver.serving.process import Readiness, tracker
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.tls import ServerTls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from unit.serving.conftest import CertificateFiles

HEAD = b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n"
GET = b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n"


class Admitting(Connections):
    """Connections that remember all that they have admitted."""

    def __init__(self, *given: Any, **named: Any) -> None:
        """See `Connections`."""
        super().__init__(*given, **named)
        self.admitted: list[Guard] = []

    def admit(self) -> Guard | None:
        """See `Connections`."""
        guard = super().admit()
        self.admitted += [guard] if guard else []
        return guard


class Bench:
    """A server on a loopback port with a fake clock."""

    def __init__(self) -> None:
        """Start at time 0."""
        self.now = 0.0
        self.port = 0
        self.release = asyncio.Event()
        self.connections: Admitting
        self.waiting = 0
        """The number of requests that wait for `release`."""
        self.kept: dict[asyncio.StreamReader, asyncio.StreamWriter] = {}
        self._writers: list[asyncio.StreamWriter] = []

    async def echo(self, request: web.Request) -> web.Response:
        """Respond with the body; to a GET only once released."""
        if request.method == "GET":
            self.waiting += 1
            await self.release.wait()
        return web.Response(body=await request.read())

    async def ignore(self, _request: web.Request) -> web.Response:
        """Respond without reading the body."""
        return web.Response()

    async def client(self, data: bytes = b"") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect and send data."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self._writers.append(writer)
        writer.write(data)
        return reader, writer

    async def hang_up(self) -> None:
        """Close the connections of all clients."""
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def until(self, condition: Callable[[], object]) -> None:
        """Let the server run until a condition holds."""
        async with asyncio.timeout(60):
            while not condition():  # noqa: ASYNC110 (the server only needs turns of the same event loop)
                await asyncio.sleep(0)

    def unfinished(self) -> int:
        """Return the number of connections with an unfinished request."""
        return sum(guard.is_unfinished_since(self.now) for guard in self.connections.admitted)


@pytest.fixture
async def bench() -> AsyncIterator[Bench]:
    """Run the server with a limit of four connections."""
    bench = Bench()
    application = web.Application()
    application.middlewares.append(tracker(ProcessMetrics("t"), Readiness(), clock=lambda: bench.now))
    application.router.add_route("*", "/echo", bench.echo)
    application.router.add_post("/ignore", bench.ignore)
    runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    assert runner.server is not None
    bench.connections = Admitting(runner.server, limit=4, unfinished_seconds=10.0, clock=lambda: bench.now)
    server = Acceptor(listening_socket("127.0.0.1", 0), bench.connections, None)
    bench.port = server.port
    yield bench
    bench.release.set()
    await bench.hang_up()
    await server.close()
    await runner.cleanup()


async def answer(reader: asyncio.StreamReader, body: bytes) -> None:
    """Read a response that ends with a body."""
    async with asyncio.timeout(60):
        await reader.readuntil(b"\r\n\r\n" + body)


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(b"P", id="one byte"),
        pytest.param(HEAD, id="incomplete headers"),
        pytest.param(HEAD + b"\r\n", id="headers without the body"),
        pytest.param(HEAD + b"\r\nabc", id="all but the last byte"),
        pytest.param(HEAD + b"\r\nabcd" + HEAD + b"\r\na", id="an unfinished second request"),
        pytest.param(
            b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n",
            id="chunks without the final one",
        ),
    ],
)
async def test_the_connection_of_an_unfinished_request_is_closed_after_ten_seconds(
    bench: Bench, sent: bytes
) -> None:
    """Data that arrives in the meantime does not extend the time."""
    reader, writer = await bench.client(sent)
    await bench.until(bench.unfinished)
    bench.now = 9.9
    bench.connections.sweep()
    writer.write(b"x") if sent == HEAD else None
    assert len(bench.connections) == 1
    bench.now = 10.0
    bench.connections.sweep()
    with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
        async with asyncio.timeout(60):
            await reader.readuntil(b"never sent")
    await bench.until(lambda: len(bench.connections) == 0)


async def test_idle_and_busy_connections_are_not_closed(bench: Bench) -> None:
    """A slow response does not count as an unfinished request, nor does a pipelined request behind it."""
    idle, idle_writer = await bench.client(HEAD + b"\r\nabcd")
    await answer(idle, b"abcd")
    busy, busy_writer = await bench.client(GET)
    await bench.until(lambda: bench.waiting == 1)
    busy_writer.write(HEAD)
    silent, _ = await bench.client()
    await bench.until(lambda: len(bench.connections) == 3)
    bench.now = 3600.0
    bench.connections.sweep()

    bench.release.set()
    await answer(busy, b"")
    busy_writer.write(b"\r\nabcd")
    await answer(busy, b"abcd")
    idle_writer.write(HEAD + b"\r\nefgh")
    await answer(idle, b"efgh")
    assert not silent.at_eof()


async def test_an_unfinished_request_behind_an_answered_one_is_aborted_too(bench: Bench) -> None:
    """Its time begins with the response to the first one."""
    reader, writer = await bench.client(GET)
    await bench.until(lambda: bench.waiting == 1)
    writer.write(HEAD + b"\r\nab")
    for _ in range(4):
        await asyncio.sleep(0)  # the server reads it on the same event loop
    bench.now = 100.0
    bench.release.set()
    await answer(reader, b"")
    await bench.until(bench.unfinished)
    bench.now = 110.0
    bench.connections.sweep()
    await gone(reader)


async def test_a_connection_remains_usable_if_a_handler_does_not_read_the_body(bench: Bench) -> None:
    """The unread body does not count as an unfinished request."""
    reader, writer = await bench.client(HEAD.replace(b"/echo", b"/ignore") + b"\r\nabcd")
    await answer(reader, b"")
    bench.now = 100.0
    bench.connections.sweep()
    writer.write(HEAD + b"\r\nefgh")
    await answer(reader, b"efgh")


class Recorded(asyncio.Transport):
    """A transport that records whether it reads, and whether it was aborted."""

    def __init__(self) -> None:
        """Start reading."""
        super().__init__()
        self.is_aborted = False
        self._is_reading = True

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """See `asyncio.Transport`."""

    def is_reading(self) -> bool:
        """See `asyncio.Transport`."""
        return self._is_reading

    def pause_reading(self) -> None:
        """See `asyncio.Transport`."""
        self._is_reading = False

    def resume_reading(self) -> None:
        """See `asyncio.Transport`."""
        self._is_reading = True

    def abort(self) -> None:
        """See `asyncio.Transport`."""
        self.is_aborted = True


@pytest.mark.parametrize("reads_at_last", [False, True])
def test_a_client_that_does_not_read_responses_is_disconnected(*, reads_at_last: bool) -> None:
    """Until it reads them or is disconnected, no more of its requests are read."""
    now = 0.0
    connections = Connections(asyncio.Protocol, limit=1, unfinished_seconds=10.0, clock=lambda: now)
    guard, transport = connections.admit(), Recorded()
    assert guard is not None
    guard.connection_made(transport)
    guard.pause_writing()
    assert not transport.is_reading()

    now = 9.0
    connections.sweep()
    assert not transport.is_aborted
    if reads_at_last:
        guard.resume_writing()
    assert transport.is_reading() is reads_at_last
    now = 10.0
    connections.sweep()
    assert transport.is_aborted is not reads_at_last


async def answered(bench: Bench) -> asyncio.StreamReader:
    """Connect and complete one request; the connection stays open."""
    reader, writer = await bench.client(HEAD + b"\r\nabcd")
    await answer(reader, b"abcd")
    bench.kept[reader] = writer
    return reader


async def gone(reader: asyncio.StreamReader) -> None:
    """Wait until the server has closed a connection."""
    with contextlib.suppress(ConnectionError):
        async with asyncio.timeout(60):
            assert await reader.read() == b""


async def test_beyond_the_limit_the_oldest_connection_without_a_response_is_closed(bench: Bench) -> None:
    """It may be silent or within a request. Connections that had a response are kept, however old."""
    first = await answered(bench)
    silent, _ = await bench.client()
    await bench.until(lambda: len(bench.connections) == 2)
    stalling, _ = await bench.client(HEAD)
    await bench.until(bench.unfinished)
    without_body, _ = await bench.client(HEAD + b"\r\n")
    await bench.until(lambda: bench.unfinished() == 2)

    for loser in (silent, stalling, without_body):
        await answered(bench)
        await gone(loser)

    bench.kept[first].write(HEAD + b"\r\nefgh")
    await answer(first, b"efgh")
    assert len(bench.connections) == 4


async def test_if_all_had_responses_the_least_recently_used_connection_is_closed(bench: Bench) -> None:
    """It is not the one that was opened first."""
    first, second, *_ = [await answered(bench) for _ in range(4)]
    bench.kept[first].write(HEAD + b"\r\nefgh")
    await answer(first, b"efgh")

    await answered(bench)
    await gone(second)
    assert not first.at_eof()


async def test_a_new_connection_is_rejected_while_all_others_are_being_served(bench: Bench) -> None:
    """Once they have their responses, a new connection is accepted."""
    busy = [(await bench.client(GET))[0] for _ in range(4)]
    await bench.until(lambda: bench.waiting == 4 and bench.unfinished() == 0)
    refused, _ = await bench.client(HEAD + b"\r\nabcd")
    await gone(refused)

    bench.release.set()
    for reader in busy:
        await answer(reader, b"")
    await answered(bench)


async def test_a_connection_without_a_tls_handshake_is_closed_for_a_new_one(
    bench: Bench, files: CertificateFiles
) -> None:
    """Connections count from before the handshake, and aborted ones are removed."""
    tls = ServerTls(files.certificate, files.key)
    listener = Acceptor(listening_socket("127.0.0.1", 0), bench.connections, tls.context)
    try:
        stuck = [await asyncio.open_connection("127.0.0.1", listener.port) for _ in range(4)]
        await bench.until(lambda: len(bench.connections) == 4)
        secure = []
        for reader, _ in stuck:
            _, writer = await asyncio.open_connection(
                "127.0.0.1", listener.port, ssl=files.client_context(), server_hostname="stowplan-test.ns.svc"
            )
            secure.append(writer)
            await gone(reader)
        for writer in secure:
            writer.transport.abort()
        await bench.until(lambda: len(bench.connections) == 0)
    finally:
        await listener.close()
        for _, writer in stuck:
            writer.close()


@pytest.mark.parametrize("host", ["", "127.0.0.1", "localhost"])
def test_a_listener_accepts_connections_at_its_address(host: str) -> None:
    """Without an address, it listens on all, including those of IPv4."""
    with listening_socket(host, 0) as listening:
        port = listening.getsockname()[1]
        socket.create_connection((host or "127.0.0.1", port), 10).close()


async def test_settling_waits_for_the_first_request(bench: Bench) -> None:
    """A new connection has up to a second for it; without one, 0.25 s are left for ongoing handshakes."""
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 10:
            writer.write(HEAD + b"\r\nabcd")
            await answer(reader, b"abcd")

    reader, writer = await bench.client()
    await bench.until(lambda: len(bench.connections) == 1)
    await bench.connections.settle(sleep=sleep)
    assert sum(waits) == pytest.approx(0.5)

    waits.clear()
    await bench.connections.settle(sleep=sleep)
    assert sum(waits) == pytest.approx(0.25)
