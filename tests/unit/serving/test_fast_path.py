"""The fast path answers usual requests itself, and everything as the HTTP library does."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.listening import Served, response, served, turns, usual

from apiserver.serving.fast_path import (
    MOST_ARRIVING_BYTES,
    MOST_BODY_BYTES,
    MOST_HEAD_BYTES,
    MOST_TOGETHER_BYTES,
)

if TYPE_CHECKING:
    from collections.abc import Sequence


async def test_usual_requests_are_answered_without_the_library() -> None:
    """Even if their bodies arrive in parts, and with any status."""
    body = b'{"a":1}' * 2000
    async with served() as serving:
        reader, writer = await serving.connect()
        for sent in ([usual(body)], [usual(body)[:4096], usual(body)[4096:9000], usual(body)[9000:]]):
            for part in sent:
                writer.write(part)
                await turns()
            assert await response(reader) == (200, body)
        writer.write(usual(b"bad"))
        assert await response(reader) == (400, b"bad")
        writer.write(usual(b""))
        assert await response(reader) == (200, b"nothing")
        assert serving.left == 0
        text = serving.metrics.exposition().decode()
    assert 'stowplan_http_requests_total{code="200",method="POST",route="/echo"} 3.0' in text
    assert 'stowplan_http_requests_total{code="400",method="POST",route="/echo"} 1.0' in text
    assert "stowplan_http_requests_in_progress 0.0" in text


async def test_a_response_has_the_headers_of_a_response() -> None:
    """RFC 9110 asks for the date."""
    async with served() as serving:
        reader, writer = await serving.connect()
        writer.write(usual(b"{}"))
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    assert head[0] == "HTTP/1.1 200 OK"
    assert head[1:3] == ["Content-Type: application/json", "Content-Length: 2"]
    assert re.fullmatch(r"Date: \w{3}, \d{2} \w{3} \d{4} \d{2}:\d{2}:\d{2} GMT", head[3])


LARGE: Final = b"x" * (MOST_BODY_BYTES + 1)
UNUSUAL: Final[dict[str, bytes]] = {
    "another method": b"GET /echo HTTP/1.1\r\nHost: x\r\n\r\n",
    "another path": b"POST /other HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    "a path with a suffix": b"POST /echo/ HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    "an absolute target": b"POST http://x/echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\nx",
    "an older version": b"POST /echo HTTP/1.0\r\nContent-Length: 1\r\n\r\nx",
    "no length": b"POST /echo HTTP/1.1\r\nHost: x\r\n\r\n",
    "two lengths": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nxy",
    "a list of lengths": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 1\r\n\r\nx",
    "a negative length": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\nx",
    "a signed length": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: +1\r\n\r\nx",
    "chunks": b"POST /echo HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\n",
    "chunks and a length": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 6\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
    "a folded header": b"POST /echo HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\nContent-Length: 1\r\n\r\nx",
    "a header without a name": b"POST /echo HTTP/1.1\r\nHost: x\r\n: b\r\nContent-Length: 1\r\n\r\nx",
    "a space before a colon": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length : 1\r\n\r\nx",
    "a header with a null": b"POST /echo HTTP/1.1\r\nHost: x\r\nA: \0\r\nContent-Length: 1\r\n\r\nx",
    "bare line feeds": b"POST /echo HTTP/1.1\nHost: x\nContent-Length: 1\n\nx",
    "a compressed body": b"POST /echo HTTP/1.1\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
    "an expectation": b"POST /echo HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
    "a request to close": b"POST /echo HTTP/1.1\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx",
    "a large body": b"POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(LARGE) + LARGE,
    "a body beyond the limit": usual(b"x" * ((2 << 20) + 1)),
    "a long head": b"POST /echo HTTP/1.1\r\nHost: x\r\nA: %b\r\nContent-Length: 1\r\n\r\nx"
    % (b"a" * MOST_HEAD_BYTES),
    "a second request behind it": usual(b"first") + usual(b"second"),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
}


@pytest.mark.parametrize("sent", UNUSUAL.values(), ids=UNUSUAL.keys())
async def test_any_other_request_is_left_to_the_library(sent: bytes) -> None:
    """It gets the same responses, and so does a usual one after it."""
    found = []
    for has_fast_path in (True, False):
        async with served(has_fast_path=has_fast_path) as serving:
            found.append(await answered(serving, [sent]))
            assert serving.left == (1 if has_fast_path else 0)
    assert found[0] == found[1]
    assert found[0][0] is not None


NAMES: Final = ("Host", "A", "X-Custom", "content-length", "Content-Length", "Connection", "Expect", "Accept")
VALUES: Final = st.one_of(st.sampled_from(["4", "3", "close", "keep-alive", "a", ""]), st.text(max_size=4))
HEADERS: Final = st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=5)
STARTS: Final = st.sampled_from(["POST /echo HTTP/1.1"] * 3 + ["PUT /echo HTTP/1.1", "POST /echo?a HTTP/1.1"])


@st.composite
def requests(draw: st.DrawFn) -> bytes:
    """Draw the text of a request with a body of four bytes, mostly in the usual form."""
    headers = [("Content-Length", "4"), *draw(HEADERS)] if draw(st.booleans()) else draw(HEADERS)
    lines = [draw(STARTS), *(f"{name}: {value}" for name, value in headers)]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + b"abcd"


@settings(max_examples=60, deadline=None)
@given(
    sent=st.lists(requests(), min_size=1, max_size=3),
    cuts=st.lists(st.integers(min_value=1, max_value=300), max_size=3),
)
def test_responses_equal_those_of_the_library(sent: list[bytes], cuts: list[int]) -> None:
    """Requests are valid or not, one after the other, and arrive in any parts."""
    asyncio.run(compare(sent, cuts))


async def compare(sent: list[bytes], cuts: list[int]) -> None:
    """Send the same bytes to a listener with a fast path, and to one without."""
    text = b"".join(sent)
    ends = sorted({cut for cut in cuts if cut < len(text)} | {len(text)})
    parts = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    async with AsyncExitStack() as stack:
        both = [await stack.enter_async_context(served(has_fast_path=has)) for has in (True, False)]
        fast, plain = [await answered(serving, parts) for serving in both]
    assert fast == plain


async def answered(serving: Served, parts: Sequence[bytes]) -> list[tuple[int, bytes] | None]:
    """Send parts, and return the responses to them: up to one to a last request, or the end of the stream.

    There are many last requests, since a wrong length makes the server read some as a body.
    """
    reader, writer = await serving.connect()
    for part in parts:
        writer.write(part)
        await turns()
    writer.write(usual(b"the end") * 40)
    found: list[tuple[int, bytes] | None] = []
    while (answer := await response(reader)) is not None and answer != (200, b"the end"):
        found.append(answer)
    return [*found, answer]


async def test_a_request_behind_an_unanswered_one_is_answered_after_it() -> None:
    """Both responses arrive in order, however the second request arrives."""
    async with served() as serving:
        reader, writer = await serving.connect()
        writer.write(usual(b"first").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        writer.write(usual(b"second")[:40])
        await turns()
        writer.write(usual(b"second")[40:])
        await turns()
        serving.let_go.set()
        assert [await response(reader), await response(reader)] == [(200, b"first"), (200, b"second")]
        assert serving.left == 1


@pytest.mark.parametrize("route", ["/fail", "/faillater"])
async def test_a_failed_request_is_answered_and_its_connection_stays_usable(route: str) -> None:
    """The log has the exception, the response only says where to look. Others are not affected."""
    async with served() as serving:
        reader, writer = await serving.connect()
        other, other_writer = await serving.connect()
        writer.write(usual(b"secret").replace(b"/echo", route.encode()))
        other_writer.write(usual(b"other"))
        failed = await response(reader)
        assert await response(other) == (200, b"other")
        writer.write(usual(b"next"))
        assert await response(reader) == (200, b"next")
        assert serving.left == 0
        assert f'code="500",method="POST",route="{route}"}} 1.0' in serving.metrics.exposition().decode()
    assert failed is not None
    assert failed[0] == 500
    assert b"see the server's log" in failed[1]
    assert b"secret" not in failed[1]


@pytest.mark.parametrize("route", [b"/odd", b"/oddlater"])
async def test_a_response_that_cannot_be_written_ends_its_connection_only(route: bytes) -> None:
    """Other requests that arrive at the same time are answered."""
    async with served() as serving:
        opened = [await serving.connect() for _ in range(3)]
        for (_, writer), path in zip(opened, (b"/echo", route, b"/echo"), strict=True):
            writer.write(usual(b"x").replace(b"/echo", path))
        found = [await response(reader) for reader, _ in opened]
        assert serving.path is not None
        assert not serving.path.in_flight
    assert found == [(200, b"x"), None, (200, b"x")]


async def test_requests_that_arrive_together_are_answered_before_any_response_is_written() -> None:
    """All three are in progress while each is answered."""
    async with served() as serving:
        opened = [await serving.accepted() for _ in range(3)]
        for _, connection in opened:
            connection.data_received(usual(b"x"))
        assert not serving.echoed
        assert [await response(reader) for reader, _ in opened] == [(200, b"x")] * 3
        assert serving.in_progress == [3, 3, 3]
        assert 'duration_seconds_sum{route="/echo"} 0.0\n' not in serving.metrics.exposition().decode()


async def test_large_requests_do_not_wait_for_many_others() -> None:
    """Two of them are as much as is answered together, and so are the next two."""
    body = b"x" * MOST_BODY_BYTES
    count = MOST_TOGETHER_BYTES // MOST_BODY_BYTES
    async with served() as serving:
        opened = [await serving.accepted() for _ in range(2 * count + 1)]
        for number, (_, connection) in enumerate(opened, 1):
            connection.data_received(usual(body))
            assert serving.echoed == number // count * count
        assert [await response(reader) for reader, _ in opened] == [(200, body)] * len(opened)


async def test_a_request_that_arrives_before_the_one_before_it_is_answered_is_answered_after_it() -> None:
    """The library answers the second one."""
    async with served() as serving:
        reader, connection = await serving.accepted()
        connection.data_received(usual(b"first"))
        connection.data_received(usual(b"second"))
        assert [await response(reader), await response(reader)] == [(200, b"first"), (200, b"second")]
        assert serving.left == 1
        assert serving.path is not None
        assert not serving.path.arriving_bytes


async def test_a_request_at_the_end_of_a_stream_is_answered() -> None:
    """TLS sends nothing after the end has been handled."""
    async with served() as serving:
        _, connection = await serving.accepted()
        connection.data_received(usual(b"x"))
        connection.eof_received()
        assert serving.in_progress == [1]
        assert serving.path is not None
        assert not serving.path.in_flight


async def test_pipelined_requests_beyond_a_total_size_close_their_connection() -> None:
    """API servers send none."""
    async with served() as serving:
        assert serving.path is not None
        opened = [await serving.connect() for _ in range(MOST_ARRIVING_BYTES // (32 << 10))]
        for _, writer in opened:
            writer.write(usual(b"x").replace(b"/echo", b"/wait"))
        while len(serving.path.in_flight) < len(opened):
            await turns()
        for _, writer in opened:
            writer.write(b"x" * (64 << 10))
            await turns()
        assert serving.path.arriving_bytes <= MOST_ARRIVING_BYTES
        assert len(serving.path.connections) < len(opened)


async def test_a_client_that_does_not_read_its_response_is_disconnected() -> None:
    """It holds the memory of its responses no longer than that of a large one."""
    body = b"x" * MOST_BODY_BYTES
    async with served() as serving:
        _, writer = await serving.connect()
        assert serving.path is not None
        sent = 0
        while serving.path.connections:
            if serving.echoed == sent:
                writer.write(usual(body))
                sent += 1
            await turns()
        assert serving.left == 0


async def test_without_memory_for_another_body_a_request_waits_for_it() -> None:
    """The library queues it until the other one is answered."""
    async with served(times=1 << 20) as serving:
        first, first_writer = await serving.connect()
        first_writer.write(usual(b"x" * 100).replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        second, second_writer = await serving.connect()
        second_writer.write(usual(b"y" * 100).replace(b"/echo", b"/wait"))
        while not serving.left:
            await turns()
        serving.let_go.set()
        assert await response(first) == (200, b"x" * 100)
        assert await response(second) == (200, b"y" * 100)


@pytest.mark.parametrize("first", [300, MOST_BODY_BYTES], ids=["little by little", "at once"])
async def test_incomplete_requests_beyond_a_total_size_are_left_to_the_library(first: int) -> None:
    """It aborts the largest ones if they need too much memory; all these are answered once complete."""
    body = b"x" * MOST_BODY_BYTES
    count = MOST_ARRIVING_BYTES // MOST_BODY_BYTES + 8
    async with served() as serving:
        opened = [await serving.connect() for _ in range(count)]
        for part in (slice(first), slice(first, -1)):
            for _, writer in opened:
                writer.write(usual(body)[part])
                await writer.drain()
            await turns()
        assert serving.path is not None
        while not serving.left:
            await turns()
        assert serving.path.arriving_bytes <= MOST_ARRIVING_BYTES
        for reader, writer in opened:
            writer.write(b"x")
            assert await response(reader) == (200, body)
        assert serving.path.arriving_bytes == 0
