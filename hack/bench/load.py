"""Closed-loop load on a server process: each connection asks again as soon as it is answered."""

from __future__ import annotations

import gc
import select
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from hack.bench.connection import Answer, Connection
from hack.bench.cores import cpu_seconds

_PATIENCE_SECONDS: Final = 30.0


class WrongAnswerError(Exception):
    """A server answered otherwise than it should: what it takes for that is no measurement."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Served:
    """What a server did under load."""

    requests: int
    seconds: float
    server_cpu_seconds: float
    latencies_seconds: tuple[float, ...]
    """Of every request, from before its first byte is sent until its answer's last is read."""

    @property
    def cpu_per_request_seconds(self) -> float:
        """CPU time of the server, all its threads, per request."""
        return self.server_cpu_seconds / self.requests

    @property
    def requests_per_second(self) -> float:
        """Requests answered per second of wall time."""
        return self.requests / self.seconds

    @property
    def server_busy(self) -> float:
        """Share of the time in which the server had a core; well below 1, the load was the bottleneck."""
        return self.server_cpu_seconds / self.seconds


def ask(connection: Connection, request: bytes) -> Answer:
    """Send one request and wait for its answer. Raises WrongAnswerError when none comes."""
    connection.send(request)
    while (answer := connection.receive()) is None:
        if not select.select([connection], [], [], _PATIENCE_SECONDS)[0]:
            raise WrongAnswerError(f"no answer within {_PATIENCE_SECONDS:.0f} s")
    return answer


def drive(
    connections: Sequence[Connection],
    requests: Iterator[bytes],
    want: Answer,
    *,
    pid: int,
    seconds: float,
    least: int = 0,
) -> Served:
    """Send requests, which must not end, through all connections, for so long, to the server of that pid.

    However long they take, there are so many at least.

    Raises WrongAnswerError as soon as an answer differs from the wanted one, or none comes.
    """
    gc.collect()
    gc.disable()  # a collection of ours would be a latency of the server's
    try:
        server, began = cpu_seconds(pid), time.perf_counter()
        latencies = _rounds(connections, requests, want, until=began + seconds, least=least)
        ended = time.perf_counter()
        return Served(
            requests=len(latencies),
            seconds=ended - began,
            server_cpu_seconds=cpu_seconds(pid) - server,
            latencies_seconds=tuple(latencies),
        )
    finally:
        gc.enable()


def _rounds(
    connections: Sequence[Connection], requests: Iterator[bytes], want: Answer, *, until: float, least: int
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
                        f"after {len(latencies)} requests another answer came: {answer!r:.500}"
                    )
                if now < until or len(latencies) < least:
                    request = next(requests)
                    sent[number] = clock()
                    waiting[number].send(request)
    return latencies
