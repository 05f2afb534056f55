"""Requests of megabytes over one TLS connection, one at a time, and what they cost the server."""

from __future__ import annotations

import gc
import re
import socket
import ssl
import time
from typing import Final, Self

from hack.bench.connection import Answer, ConnectionBrokenError
from hack.bench.cpu_time import cpu_seconds
from hack.bench.load import Served, WrongAnswerError
from hack.bench.server_process import ADDRESS

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STATUS: Final = slice(9, 12)
_READ_BYTES: Final = 1 << 18
_PATIENCE_SECONDS: Final = 30.0
_LEAST_REQUESTS: Final = 3


class Exchange:
    """A blocking connection: it gathers an answer in pieces and never copies what it has."""

    def __init__(self, stream: ssl.SSLSocket) -> None:
        self._stream = stream

    @classmethod
    def open(cls, port: int, context: ssl.SSLContext, *, server_name: str) -> Self:
        """Connect and shake hands. Raises OSError."""
        plain = socket.create_connection((ADDRESS, port), _PATIENCE_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return cls(context.wrap_socket(plain, server_hostname=server_name))

    def ask(self, request: bytes) -> Answer:
        """Send a request and return its whole answer. Raises ConnectionBrokenError, and OSError."""
        self._stream.sendall(request)
        received = self._read()
        while (begin := received.find(_HEAD_END)) < 0:
            received += self._read()
        length = _LENGTH.search(received, 0, begin)
        if length is None:
            raise ConnectionBrokenError(f"a response without Content-Length: {received[:200]!r}")
        pieces = [received[begin + len(_HEAD_END) :]]
        missing = int(length[1]) - len(pieces[0])
        while missing > 0:
            pieces.append(self._read())
            missing -= len(pieces[-1])
        return Answer(int(received[_STATUS]), b"".join(pieces))

    def close(self) -> None:
        """Close it without ceremony."""
        self._stream.close()

    def _read(self) -> bytes:
        received = self._stream.recv(_READ_BYTES)
        if not received:
            raise ConnectionBrokenError("the server closed the connection in the middle")
        return received


def exchange_for(connection: Exchange, request: bytes, want: Answer, *, pid: int, seconds: float) -> Served:
    """Ask the server of that pid the same for so many seconds, and a few times at least.

    Raises WrongAnswerError as soon as an answer differs from the wanted one.
    """
    gc.collect()
    gc.disable()  # a collection of ours would be a latency of the server's
    try:
        own, server, began = time.process_time(), cpu_seconds(pid), time.perf_counter()
        latencies: list[float] = []
        while len(latencies) < _LEAST_REQUESTS or time.perf_counter() - began < seconds:
            sent = time.perf_counter()
            answer = connection.ask(request)
            latencies.append(time.perf_counter() - sent)
            if answer != want:
                raise WrongAnswerError(f"after {len(latencies)} requests another answer came")
        return Served(
            requests=len(latencies),
            seconds=time.perf_counter() - began,
            server_cpu_seconds=cpu_seconds(pid) - server,
            load_cpu_seconds=time.process_time() - own,
            latencies_seconds=tuple(latencies),
        )
    finally:
        gc.enable()
