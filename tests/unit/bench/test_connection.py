"""Answers as they arrive on a connection."""

from __future__ import annotations

import pytest

from hack.bench.connection import Answer, ConnectionBrokenError, parsed

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n"

ARRIVED = {
    "all of it": (HEAD + b"{}", Answer(200, b"{}")),
    "half of the head": (HEAD[:20], None),
    "half of the body": (HEAD + b"{", None),
    "a length in lower case": (b"HTTP/1.1 422 X\r\ncontent-length:1\r\n\r\nx", Answer(422, b"x")),
    "no body": (b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", Answer(204, b"")),
}


@pytest.mark.parametrize(("received", "want"), ARRIVED.values(), ids=ARRIVED.keys())
def test_an_answer_is_there_when_all_of_it_is(received: bytes, want: Answer | None) -> None:
    """Until then there is none."""
    assert parsed(received) == want


def test_an_answer_without_length_cannot_be_measured() -> None:
    """Chunks would need a parser, which would cost more than the server."""
    with pytest.raises(ConnectionBrokenError, match="without Content-Length"):
        parsed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
