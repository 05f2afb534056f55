"""One keep-alive HTTP/1.1 connection over TLS, with as little Python per request as can be.

A client library would cost more than the server that is measured, and the load would wait for itself.
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
_READ_BYTES: Final = 1 << 16
_PATIENCE_SECONDS: Final = 10.0


class ConnectionBrokenError(Exception):
    """The server closed a connection in the middle, or did not speak HTTP as expected."""


@dataclass(frozen=True, slots=True)
class Answer:
    """A whole response."""

    status: int
    body: bytes


class Connection:
    """One request at a time: `send`, then `receive` whenever the socket is readable. Make it with `open`."""

    def __init__(self, stream: ssl.SSLSocket) -> None:
        self._stream = stream
        self._received = b""

    @classmethod
    def open(cls, address: tuple[str, int], context: ssl.SSLContext, *, server_name: str) -> Self:
        """Connect and shake hands; OSError when nobody listens or the certificate is not the right one."""
        plain = socket.create_connection(address, _PATIENCE_SECONDS)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream = context.wrap_socket(plain, server_hostname=server_name)
        stream.setblocking(False)
        return cls(stream)

    @property
    def protocol(self) -> str:
        """What was agreed on, such as `TLSv1.3`."""
        return self._stream.version() or ""

    def fileno(self) -> int:
        """Return what to wait on."""
        return self._stream.fileno()

    def send(self, request: bytes) -> None:
        """Send a whole request."""
        while True:
            try:
                self._stream.send(request)
            except ssl.SSLWantWriteError:
                select.select([], [self._stream], [], _PATIENCE_SECONDS)
            else:
                return

    def receive(self) -> Answer | None:
        """Return the answer if all of it is there, else None. Raises ConnectionBrokenError."""
        while True:
            try:
                received = self._stream.recv(_READ_BYTES)
            except ssl.SSLWantReadError:
                return None
            if not received:
                raise ConnectionBrokenError(
                    f"the server closed the connection after {self._received[:200]!r}"
                )
            self._received += received
            answer = parsed(self._received)
            if answer is not None:
                self._received = b""
                return answer

    def close(self) -> None:
        """Close it without ceremony."""
        self._stream.close()


def parsed(received: bytes) -> Answer | None:
    """Return the response if all of it is there. Raises ConnectionBrokenError for one without a length."""
    head_end = received.find(_HEAD_END)
    if head_end < 0:
        return None
    length = _LENGTH.search(received, 0, head_end)
    if length is None:
        raise ConnectionBrokenError(f"a response without Content-Length: {received[:200]!r}")
    begin = head_end + len(_HEAD_END)
    end = begin + int(length[1])
    return Answer(int(received[_STATUS]), received[begin:end]) if len(received) >= end else None
