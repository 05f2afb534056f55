"""Closed-loop load on a server process: each connection sends its next request after each response."""

from __future__ import annotations

import gc
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hack.calling.connection import Connection, HttpResponse
from hack.calling.cores import cpu_seconds

_PATIENCE_SECONDS: Final = 30.0


class WrongAnswerError(Exception):
    """A server sent a wrong response or none, so its cost cannot be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadFigures:
    """Figures of a server under load."""

    requests: int
    seconds: float
    server_cpu_seconds: float
    latencies_seconds: tuple[float, ...]
    """Of every request, from before its first byte is sent until the last byte of the response is read."""

    @property
    def cpu_per_request_seconds(self) -> float:
        """CPU time of all threads of the server per request."""
        return self.server_cpu_seconds / self.requests

    @property
    def requests_per_second(self) -> float:
        """Completed requests per second of wall-clock time."""
        return self.requests / self.seconds


def ask(connection: Connection, request: bytes) -> HttpResponse:
    """Send one request and return the response. Raises WrongAnswerError if there is none within 30 s."""
    connection.send(request)
    while (answer := connection.receive()) is None:
        if not select.select([connection], [], [], _PATIENCE_SECONDS)[0]:
            raise WrongAnswerError(f"no answer within {_PATIENCE_SECONDS:.0f} s")
    return answer


def drive(
    connections: Sequence[Connection],
    requests: Iterator[bytes],
    want: HttpResponse,
    *,
    pid: int,
    seconds: float,
    least: int = 0,
) -> LoadFigures:
    """Send requests over all connections for `seconds`, but at least `least` of them; return the figures.

    `requests` must be infinite; `pid` is the server's. Raises WrongAnswerError as soon as a response differs
    from `want`, or there is none within 30 s.
    """
    gc.collect()
    gc.disable()  # a collection here would count as latency of the server
    try:
        server, began = cpu_seconds(pid), time.perf_counter()
        latencies = _rounds(connections, requests, want, until=began + seconds, least=least)
        ended = time.perf_counter()
        return LoadFigures(
            requests=len(latencies),
            seconds=ended - began,
            server_cpu_seconds=cpu_seconds(pid) - server,
            latencies_seconds=tuple(latencies),
        )
    finally:
        gc.enable()


def _rounds(
    connections: Sequence[Connection],
    requests: Iterator[bytes],
    want: HttpResponse,
    *,
    until: float,
    least: int,
) -> list[float]:
    clock, latencies = time.perf_counter, list[float]()
    waiting = {connection.fileno(): connection for connection in connections}
    sent: dict[int, float] = {}
    with select.epoll() as poll:
        for number, connection in waiting.items():
            poll.register(number, select.EPOLLIN)
            sent[number] = clock()
            connection.send(next(requests))
        while sent:
            ready = poll.poll(_PATIENCE_SECONDS)
            if not ready:
                raise WrongAnswerError(f"no answer within {_PATIENCE_SECONDS:.0f} s")
            for number, _event in ready:
                answer = waiting[number].receive()
                if answer is None:
                    continue
                now = clock()
                latencies.append(now - sent.pop(number))
                if answer != want:
                    raise WrongAnswerError(
                        f"response {len(latencies)} differs from the first: {answer!r:.500}"
                    )
                if now < until or len(latencies) < least:
                    request = next(requests)
                    sent[number] = clock()
                    waiting[number].send(request)
    return latencies
