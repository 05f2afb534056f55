"""A listener with a fast path in this process, and clients that send it bytes."""

from __future__ import annotations

import asyncio
import contextlib
import re
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from apiserver.serving.bodies import Answer, Post, Reply
from apiserver.serving.fast_path import FastConnection, FastPath
from apiserver.serving.listener import Listener
from apiserver.serving.options import Limits
from apiserver.serving.process_metrics import ProcessMetrics
from apiserver.serving.readiness import Readiness
from apiserver.serving.requests import Requests
from support.posting import post_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

PATIENCE_SECONDS: Final = 60
HEAD: Final = (
    b"POST /echo?timeout=10s HTTP/1.1\r\nHost: stowplan-webhooks.stowplan-system.svc:443\r\n"
    b"User-Agent: kube-apiserver-admission\r\nContent-Length: %d\r\nAccept: application/json, */*\r\n"
    b"Content-Type: application/json\r\nAccept-Encoding: gzip\r\n\r\n"
)
"""What API servers send."""


def usual(body: bytes) -> bytes:
    """Return a request in the form of API servers."""
    return HEAD % len(body) + body


class Served:
    """A listener on a loopback port, with its fast path if it has one."""

    def __init__(self) -> None:
        self.metrics = ProcessMetrics("test")
        self.readiness = Readiness()
        self.path: FastPath | None = None
        self.left = 0
        """The number of connections that were left to the library."""
        self.in_progress: list[int] = []
        """The number of requests in progress whenever a body is echoed."""
        self.waiting = asyncio.Event()
        self.let_go = asyncio.Event()
        self.listener: Listener
        self._writers: list[asyncio.StreamWriter] = []

    def echo(self, body: bytes) -> Reply:
        """Respond with the body, at once."""
        self.in_progress.append(self.metrics.requests_in_progress)
        return Reply(body or b"nothing", 400 if body == b"bad" else 200)

    def odd(self, body: bytes) -> Reply:
        """Respond with a status that cannot be written."""
        return Reply(body, 999)

    async def wait(self, body: bytes) -> Reply:
        """Respond with the body, once let go."""
        self.waiting.set()
        await self.let_go.wait()
        return Reply(body)

    def fail(self, body: bytes) -> Reply:
        """Raise an exception."""
        raise RuntimeError(body.decode())

    async def fail_later(self, body: bytes) -> Reply:
        """Raise an exception, later."""
        return self.fail(body)

    async def odd_later(self, body: bytes) -> Reply:
        """Respond with a status that cannot be written, later."""
        return self.odd(body)

    async def open(self, posts: dict[str, Post], *, has_fast_path: bool, finish_seconds: float) -> None:
        """Listen."""
        requests = Requests(self.metrics, self.readiness, clock=asyncio.get_running_loop().time)

        def fast_path(library: Callable[[], asyncio.Protocol]) -> FastPath:
            def counted() -> asyncio.Protocol:
                self.left += 1
                return library()

            self.path = requests.fast_path(posts, counted, answer_seconds=0.1)
            return self.path

        self.listener = await Listener.open(
            requests.server(posts),
            Limits(finish_seconds=finish_seconds),
            host="127.0.0.1",
            port=0,
            fast_path=fast_path if has_fast_path else None,
        )

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect, until the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.listener.port)
        self._writers.append(writer)
        return reader, writer

    @property
    def echoed(self) -> int:
        """The number of bodies that have been echoed."""
        return len(self.in_progress)

    async def accepted(self) -> tuple[asyncio.StreamReader, FastConnection]:
        """Connect; return the client's reader, and the connection of the fast path."""
        assert self.path is not None
        before = set(self.path.connections)
        reader, _ = await self.connect()
        while not (new := self.path.connections - before):
            await turns()
        return reader, new.pop()

    async def close(self) -> None:
        """Close all connections and the listener."""
        self.let_go.set()
        for writer in self._writers:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        await self.listener.close()


@asynccontextmanager
async def served(
    *, has_fast_path: bool = True, times: int = 1, finish_seconds: float = 5.0
) -> AsyncIterator[Served]:
    """Listen, and close in the end."""
    serving = Served()
    answers: dict[str, Answer] = {
        "/echo": serving.echo,
        "/wait": serving.wait,
        "/fail": serving.fail,
        "/faillater": serving.fail_later,
        "/odd": serving.odd,
        "/oddlater": serving.odd_later,
    }
    posts = {path: post_of(answer, times=times) for path, answer in answers.items()}
    async with asyncio.timeout(PATIENCE_SECONDS):
        await serving.open(posts, has_fast_path=has_fast_path, finish_seconds=finish_seconds)
        try:
            yield serving
        finally:
            await serving.close()


async def turns(count: int = 4) -> None:
    """Let the server read what has been written: it runs on the same event loop, over loopback."""
    for _ in range(count):
        await asyncio.sleep(0)


async def response(reader: asyncio.StreamReader) -> tuple[int, bytes] | None:
    """Return the status and the body of the next final response; None if the connection is closed instead."""
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, ConnectionError):
        return None
    status = int(head.split()[1])
    if status == 100:
        return await response(reader)
    found = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
    return status, await reader.readexactly(int(found[1]) if found else 0)
