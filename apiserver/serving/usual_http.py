"""The form of HTTP/1.1 (RFC 9112) that API servers use for small requests, and that of our responses."""

from __future__ import annotations

import re
import time
from email.utils import formatdate
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from apiserver.serving.bodies import JSON

if TYPE_CHECKING:
    from apiserver.serving.bodies import Reply

_START: Final = re.compile(rb"POST (/[a-z]+)(?:\?[A-Za-z0-9=&%._~-]*)? HTTP/1\.1")
_FIELD: Final = re.compile(rb"([A-Za-z0-9-]+):[\t ]*([\t -~]*)")
_LENGTH: Final = re.compile(rb"[0-9]{1,6}")
_UNUSUAL_FIELDS: Final = frozenset(
    {b"connection", b"content-encoding", b"expect", b"transfer-encoding", b"upgrade"}
)
"""The fields that concern framing or the connection, other than a Content-Length."""

_MOST_HEADS: Final = 512
"""The number of heads that are remembered: those of one API server differ only by the length."""

_JSON: Final = JSON.encode()
_REASONS: Final = {status.value: status.phrase.encode() for status in HTTPStatus}


@lru_cache(maxsize=_MOST_HEADS)
def usual_request(head: bytes) -> tuple[str, int] | None:
    """Return the path and the length of the body if the head of a request has the usual form.

    It has a Host and a Content-Length, no field twice, and none that the HTTP library would have to act on.
    """
    first, *lines = head.split(b"\r\n")
    start = _START.fullmatch(first)
    fields = {}
    for line in lines:
        field = _FIELD.fullmatch(line)
        name = b"" if field is None else field[1].lower()
        if field is None or name in fields or name in _UNUSUAL_FIELDS:
            return None
        fields[name] = field[2]
    length = _LENGTH.fullmatch(fields.get(b"content-length", b""))
    if start is None or length is None or b"host" not in fields:
        return None
    return start[1].decode(), int(length[0])


def response(reply: Reply, *, is_last: bool) -> bytes:
    """Return the text of a response with JSON; `is_last` tells the client that the connection ends."""
    return b"HTTP/1.1 %d %b\r\nContent-Type: %b\r\nContent-Length: %d\r\nDate: %b\r\n%b\r\n%b" % (
        reply.status,
        _REASONS[reply.status],
        _JSON,
        len(reply.body),
        _date(int(time.time())),
        b"Connection: close\r\n" if is_last else b"",
        reply.body,
    )


@lru_cache(maxsize=1)
def _date(seconds: int) -> bytes:
    return formatdate(seconds, usegmt=True).encode()
