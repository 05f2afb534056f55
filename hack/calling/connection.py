"""One keep-alive HTTP/1.1 connection over TLS, with minimal Python code per request.

A client library would take more CPU time than the measured server, and so become the bottleneck.
"""

from __future__ import annotations

import re
import select
import socket
import ssl
from dataclasses import dataclass
from typing import Final, Self

_HEAD_END: Final = b"\r\n\r\n"
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_STATUS: Final = slice(9, 12)
_READ_BYTES: Final = 1 << 18
_PATIENCE_SECONDS: Final = 10.0


class ConnectionBrokenError(Exception):
    """The server closed the connection early, or sent a response without Content-Length."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """A complete response."""

    status: int
    body: bytes


class Connection:
    """A connection for one request at a time: `send`, then `receive` whenever it is readable; see `open`."""

    def __init__(self, stream: ssl.SSLSocket) -> None:
        self._stream = stream
        self._pieces: list[bytes] = []
        self._missing: int | None = None

    @classmethod
    def open(cls, address: tuple[str, int], context: ssl.SSLContext, *, server_name: str) -> Self:
        """Connect, with the TLS handshake. Raises OSError if connecting or verification fails."""
        plain = socket.create_connection(address, _PATIENCE_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(plain, server_hostname=server_name)
        stream.setblocking(False)
        return cls(stream)

    def fileno(self) -> int:
        """Return the file descriptor, to wait until it is readable."""
        return self._stream.fileno()

    def send(self, request: bytes) -> None:
        """Send a complete request."""
        left = memoryview(request)
        while left:
            try:
                left = left[self._stream.send(left) :]
            except ssl.SSLWantWriteError:
                select.select([], [self._stream], [], _PATIENCE_SECONDS)

    def receive(self) -> HttpResponse | None:
        """Return the response if it is complete, else None. Raises ConnectionBrokenError."""
        while True:
            try:
                received = self._stream.recv(_READ_BYTES)
            except ssl.SSLWantReadError:
                return None
            if not received:
                raise ConnectionBrokenError(
                    f"the server closed the connection after {self._pieces[:1]!r:.200}"
                )
            self._pieces.append(received)
            if self._missing is None:
                self._pieces = [b"".join(self._pieces)]
                self._missing = _missing_bytes(self._pieces[0])
            else:
                self._missing -= len(received)
            if self._missing is not None and self._missing <= 0:
                head, _, body = b"".join(self._pieces).partition(_HEAD_END)
                self._pieces, self._missing = [], None
                return HttpResponse(int(head[_STATUS]), body)

    def close(self) -> None:
        """Close the socket, without a TLS close."""
        self._stream.close()


def _missing_bytes(received: bytes) -> int | None:
    """Return how many bytes of a response are missing; None if its head is incomplete."""
    head_end = received.find(_HEAD_END)
    if head_end < 0:
        return None
    length = _LENGTH.search(received, 0, head_end)
    if length is None:
        raise ConnectionBrokenError(f"a response without Content-Length: {received[:200]!r}")
    return head_end + len(_HEAD_END) + int(length[1]) - len(received)
