"""The fast path while the process drains and its listener closes."""

from __future__ import annotations

import asyncio

from support.listening import PATIENCE_SECONDS, response, served, turns, usual


async def test_a_request_that_has_just_arrived_is_answered_when_the_listener_closes() -> None:
    """It has been read, but its answer has not begun."""
    async with served() as serving:
        reader, connection = await serving.accepted()
        connection.data_received(usual(b"x"))
        assert serving.path is not None
        serving.path.leave()
        assert not serving.left
        assert await response(reader) == (200, b"x")
        assert await reader.read() == b""


async def test_a_request_whose_client_disappears_in_the_turn_of_a_shutdown_leaves_nothing_behind() -> None:
    """Its task is cancelled before it runs."""
    async with served(finish_seconds=PATIENCE_SECONDS * 2) as serving:
        _, connection = await serving.accepted()
        connection.data_received(usual(b"x").replace(b"/echo", b"/wait"))
        assert serving.path is not None
        serving.path.answer_due()
        closing = asyncio.create_task(serving.listener.close())
        connection.abort()
        await closing
        assert not serving.path.in_flight
        assert not serving.metrics.requests_in_progress


async def test_a_client_that_disappears_during_a_shutdown_is_not_waited_for() -> None:
    """Its request is cancelled."""
    async with served(finish_seconds=PATIENCE_SECONDS * 2) as serving:
        _, writer = await serving.connect()
        writer.write(usual(b"x").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        closing = asyncio.create_task(serving.listener.close())
        await turns()
        writer.transport.abort()
        await closing
        assert serving.path is not None
        assert not serving.path.in_flight


async def test_a_closing_listener_completes_requests_and_closes_idle_connections() -> None:
    """A body that is still arriving is waited for, too."""
    async with served() as serving:
        idle, _ = await serving.connect()
        arriving, arriving_writer = await serving.connect()
        arriving_writer.write(usual(b"arriving")[:-3])
        busy, busy_writer = await serving.connect()
        busy_writer.write(usual(b"busy").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        closing = asyncio.create_task(serving.listener.close(settle=True))
        await turns()
        arriving_writer.write(b"ing")
        assert await response(arriving) == (200, b"arriving")
        serving.let_go.set()
        assert await response(busy) == (200, b"busy")
        assert await idle.read() == b""
        assert await busy.read() == b""
        await closing


async def test_while_draining_responses_close_the_connection() -> None:
    """Clients move to other replicas, as with the library."""
    async with served() as serving:
        reader, writer = await serving.connect()
        writer.write(usual(b"before"))
        assert await response(reader) == (200, b"before")
        serving.readiness.drain()
        writer.write(usual(b"after"))
        assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await reader.read() == b"after"


async def test_a_request_in_flight_when_draining_begins_gets_the_last_response() -> None:
    """The client is told, and sends nothing more on this connection."""
    async with served() as serving:
        reader, writer = await serving.connect()
        writer.write(usual(b"x").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        serving.readiness.drain()
        serving.let_go.set()
        assert b"connection: close" in (await reader.readuntil(b"\r\n\r\n")).lower()
        assert await reader.read() == b"x"


async def test_a_closing_listener_does_not_wait_for_a_client_that_has_gone() -> None:
    """Its request is cancelled."""
    async with served(finish_seconds=PATIENCE_SECONDS * 2) as serving:
        _, writer = await serving.connect()
        writer.write(usual(b"x").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        writer.transport.abort()
        assert serving.path is not None
        while serving.path.connections:
            await turns()
        await serving.listener.close()
        assert not serving.path.in_flight


async def test_a_request_that_does_not_end_is_aborted_when_the_listener_closes() -> None:
    """It has had the time of a shutdown."""
    async with served(finish_seconds=0.1) as serving:
        reader, writer = await serving.connect()
        writer.write(usual(b"x").replace(b"/echo", b"/wait"))
        await serving.waiting.wait()
        await serving.listener.close()
        assert serving.path is not None
        assert not serving.path.in_flight
        assert await response(reader) is None
