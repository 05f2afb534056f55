"""Attacks by connections and request bodies: other clients are answered, and memory stays bounded."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import io
import itertools
import json
import resource
import socket
import ssl
import struct
from typing import TYPE_CHECKING, Final

import aiohttp
import pytest
from support.attacked import Attacked, attacked
from support.campaign import rounds, share, tell
from support.reviews import variant

from hack.calling.conversion_reviews import SERVER_NAME
from hack.calling.server_process import ADDRESS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

PATIENCE_SECONDS: Final = 120
HELD: Final = 1_024 + 256
"""More concurrent connections than a listener accepts."""

SLOW: Final = share(HELD + 100, full=60_000)
DEAF: Final = 1_024 - 16
PIPELINED: Final = 20
"""Requests of 60 kB that are sent at once."""

UNREAD: Final = share(32, full=320)
LONG: Final = 30_000
"""Objects of 1 kB in one list."""

ABORTED: Final = share(2_000, full=100_000)
BOMBS: Final = share(4, full=1_000)
AT_ONCE: Final = 16
FILES: Final = 64
MIB: Final = 1 << 20
HEAD: Final = b"POST /convert HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
RESET: Final = struct.pack("ii", 1, 0)
"""SO_LINGER of 0 s: closing a socket sends a reset immediately."""


def client_hello() -> bytes:
    """Return the first message of a TLS handshake."""
    sent = ssl.MemoryBIO()
    client = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), sent, server_hostname=SERVER_NAME)
    with contextlib.suppress(ssl.SSLWantReadError):
        client.do_handshake()
    return sent.read()


HELLO: Final = client_hello()


async def plain(target: Attacked, sent: bytes = b"") -> asyncio.Transport:
    """Connect without TLS, and send bytes."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, ADDRESS, target.server.port)
    transport.write(sent)
    return transport


async def over_tls(target: Attacked, sent: bytes = b"") -> asyncio.Transport:
    """Connect with TLS, and send bytes."""
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(
        asyncio.Protocol, ADDRESS, target.server.port, ssl=target.server.context, server_hostname=SERVER_NAME
    )
    transport.write(sent)
    return transport


async def more_reads(target: Attacked, count: int) -> None:
    """Wait until this many more reads have been answered."""
    until = len(target.results) + count
    async with asyncio.timeout(PATIENCE_SECONDS):
        while len(target.results) < until:  # noqa: ASYNC110 (reads are only counted, without an event)
            await asyncio.sleep(0.05)


WAITING: Final[dict[str, Callable[[Attacked], Awaitable[asyncio.Transport]]]] = {
    "nothing": plain,
    "half a handshake": lambda target: plain(target, HELLO[: len(HELLO) // 2]),
    "an unfinished handshake": lambda target: plain(target, HELLO),
    "TLS and nothing else": over_tls,
    "one byte": lambda target: over_tls(target, b"P"),
    "half the headers": lambda target: over_tls(target, HEAD),
    "headers without a body": lambda target: over_tls(target, HEAD + b"Content-Length: 60000000\r\n\r\n"),
    "half a body": lambda target: over_tls(target, HEAD + b"Content-Length: 40000\r\n\r\n" + b"[" * 20000),
}
"""What a connection sends before it stays idle without an end, by description."""


async def test_connections_that_stay_idle_do_not_block_other_clients(tmp_path: Path) -> None:
    """More are opened than the listener accepts, and again when it closes some; reads are still answered."""
    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        # First many connections that no timeout closes, then all kinds.
        begin = itertools.chain([over_tls] * (HELD - 128), itertools.cycle(WAITING.values()))
        held: list[asyncio.Transport] = []
        for number in rounds(SLOW):
            if len(held) == HELD:
                held.pop(0).abort()
            with contextlib.suppress(OSError):  # closed during its handshake
                held.append(await next(begin)(target))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
        await more_reads(target, 2 * AT_ONCE)
        for transport in held:
            transport.abort()
        say(target, f"{SLOW} connections that wait, {HELD} at once")


class Deaf(asyncio.Protocol):
    """A client that reads nothing."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See `asyncio.Protocol`."""
        assert isinstance(transport, asyncio.Transport)
        transport.pause_reading()


def conversion(size: int, *, count: int = 1) -> bytes:
    """Return a request to convert objects of about this size."""
    request = {"uid": "u", "desiredAPIVersion": "llmd.ai/v1alpha2"}
    objects = [variant(version="v1alpha1", odd="x" * size)] * count
    body = json.dumps({"kind": "ConversionReview", "request": request | {"objects": objects}}).encode()
    return HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body


async def test_connections_that_send_many_requests_at_once_and_read_nothing_take_little_memory(
    tmp_path: Path,
) -> None:
    """Their number is just below the limit, so that none is closed for another one."""
    sent = conversion(60_000) * PIPELINED

    async def send(target: Attacked) -> asyncio.Transport:
        loop, server = asyncio.get_running_loop(), target.server
        transport, _ = await loop.create_connection(
            Deaf, ADDRESS, server.port, ssl=server.context, server_hostname=SERVER_NAME
        )
        transport.write(sent)
        return transport

    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        held: list[asyncio.Transport] = []
        for _ in rounds(DEAF // AT_ONCE):
            held += await asyncio.gather(*(send(target) for _ in range(AT_ONCE)))
        await more_reads(target, AT_ONCE)
        for transport in held:
            transport.abort()
        say(target, f"{DEAF} connections with {PIPELINED} requests each")


async def test_clients_that_request_long_lists_and_do_not_read_them_take_little_memory(
    tmp_path: Path,
) -> None:
    """All lists together are larger than the memory limit."""
    sent = conversion(900, count=LONG)
    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        server, held = target.server, []
        for _ in rounds(UNREAD):
            _, writer = await asyncio.open_connection(
                ADDRESS, server.port, ssl=server.context, server_hostname=SERVER_NAME, limit=1
            )
            held.append(writer)
            writer.write(sent)
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        await more_reads(target, AT_ONCE)
        for writer in held:
            writer.transport.abort()
        say(target, f"{UNREAD} lists of {LONG} objects that are not read")


async def test_reads_continue_when_no_file_descriptor_is_left(tmp_path: Path) -> None:
    """Below the connection limit, too, idle connections are closed to make room."""
    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        resource.prlimit(target.server.pid, resource.RLIMIT_NOFILE, (FILES, FILES))
        held: list[asyncio.Transport] = []
        for _ in range(FILES // AT_ONCE + 1):  # not all at once, or a reader's connection would be the oldest
            held += [await plain(target) for _ in range(AT_ONCE)]
            await more_reads(target, 2)
        await more_reads(target, AT_ONCE)
        for transport in held:
            transport.abort()


ABORTS: Final = (b"", b"\x16\x03\x01\x02\x00\x01", HELLO[: len(HELLO) // 2], HELLO, b"GET / HTTP/1.1\r\n\r\n")
"""What is sent before a handshake is aborted."""


async def test_aborted_handshakes_do_not_leak_memory(tmp_path: Path) -> None:
    """Port scans and clients that do not trust the certificate abort handshakes."""

    async def abort(target: Attacked, sent: bytes) -> None:
        loop = asyncio.get_running_loop()
        with socket.socket() as stream, contextlib.suppress(OSError):
            stream.setblocking(False)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
            await loop.sock_connect(stream, (ADDRESS, target.server.port))
            await loop.sock_sendall(stream, sent)

    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:
        before = target.peak_mebibytes()
        for step in rounds(ABORTED // AT_ONCE):
            number = step * AT_ONCE
            sent = (ABORTS[each % len(ABORTS)] for each in range(number, number + AT_ONCE))
            await asyncio.gather(*(abort(target, each) for each in sent))
        growth = target.peak_mebibytes() - before
        say(target, f"{ABORTED} aborted handshakes, {growth:.0f} MiB more")

    assert growth <= MOST_GROWTH_MEBIBYTES


MOST_GROWTH_MEBIBYTES: Final = 40


def deep(path: str) -> bytes:
    """Return JSON nested more deeply than a parser should follow, within the size limit of a path."""
    return b'{"a":' * ((7 if path == "/validate" else 63) * MIB // 5)


BODIES: Final[dict[str, tuple[str, Callable[[], bytes], dict[str, str]]]] = {
    "compressed, a thousand times as large": (
        "/convert",
        lambda: gzip.compress(b" " * (63 * MIB), 9),
        {"Content-Encoding": "gzip"},
    ),
    "deeply nested, for conversion": ("/convert", lambda: deep("/convert"), {}),
    "deeply nested, for admission": ("/validate", lambda: deep("/validate"), {}),
}


@pytest.mark.parametrize("kind", BODIES)
async def test_compressed_and_deeply_nested_bodies_are_rejected(tmp_path: Path, kind: str) -> None:
    """Nothing is decompressed, and nesting is parsed only up to its limit."""
    path, make, headers = BODIES[kind]
    body = make()
    async with attacked(tmp_path, patience_seconds=PATIENCE_SECONDS) as target:

        async def send() -> None:
            with contextlib.suppress(aiohttp.ClientError):  # closed to make room for others
                async with target.session.post(
                    target.url(path), data=io.BytesIO(body), headers=headers, server_hostname=SERVER_NAME
                ) as answer:
                    found = await answer.text()
                    assert '"allowed":true' not in found.replace(" ", "")
                    assert "Success" not in found

        for _ in rounds(BOMBS // 4):
            await asyncio.gather(*(send() for _ in range(4)))
        say(target, f"{BOMBS} bodies that are {kind}")


def say(target: Attacked, what: str) -> None:
    """Report the results of an attack."""
    tell(
        f"{what}: {len(target.results)} reads meanwhile, the slowest {target.slowest_seconds:.1f} s,"
        f" peak {target.peak_mebibytes():.0f} MiB"
    )
