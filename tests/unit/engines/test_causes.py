"""Causes of failed requests in words, from real connections."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable

import pytest

from controller.engines.prometheus import PrometheusSource
from controller.engines.requests import cause_of

POD = {"metadata": {"namespace": "ns", "name": "p"}}
Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


def sending(text: bytes) -> Answer:
    """Return a server's answer to a connection, after which it closes it."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(text)
        await writer.drain()
        writer.close()

    return answer


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Read until the client closes the connection."""
    await reader.read()
    writer.close()


async def failure(url: str) -> str:
    """Return why Prometheus has no answer."""
    async with PrometheusSource(url, timeout_seconds=0.5) as source:
        return (await source.scrape([POD])).failures["ns", "p"]


ANSWERS = {
    "nothing": ("http", silent, "Prometheus: not in time"),
    "another protocol": ("http", sending(b"SSH-2.0\r\n\r\n"), "Prometheus: the answer is not HTTP"),
    "half an answer": (
        "http",
        sending(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc"),
        "Prometheus: the answer ended early",
    ),
    "HTTP for HTTPS": (
        "https",
        sending(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        "Prometheus: no TLS connection: check https and http in the URL, and the certificates",
    ),
}


@pytest.mark.parametrize(("scheme", "answer", "want"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_the_cause_of_a_failed_connection_is_told_in_words(
    scheme: str, answer: Answer, want: str
) -> None:
    """Names of exceptions say nothing to an operator."""
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        assert await failure(f"{scheme}://127.0.0.1:{port}") == want


async def test_a_closed_port_and_an_unknown_name_are_told_apart() -> None:
    """The port is bound, so that no other process listens on it."""
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
        assert await failure(f"http://127.0.0.1:{port}") == "Prometheus: connection refused"
    assert await failure("http://prometheus.invalid") == "Prometheus: the host name cannot be resolved"


@pytest.mark.parametrize(
    ("error", "want"),
    [
        (OSError(113, "x"), "no route to host"),
        (ValueError("its own words"), "its own words"),
        (RuntimeError(), "the connection failed"),
    ],
)
def test_other_errors_have_their_own_text(error: Exception, want: str) -> None:
    """None is without any."""
    assert cause_of(error) == want
