"""Truncation of JSON text to a nesting depth that decoders support.

Decoders stop below a thousand levels, while API servers in Go accept ten thousand. One such object would hide
all others of its list. Only metadata and free-form JSON can be nested so deeply: an API server removes what a
schema does not declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LEVELS: Final = 256
"""Nesting levels that are kept: more than a review, an object and free-form JSON need together."""

_MOST_LEVELS: Final = 11_000
"""Nesting levels above which the rest is dropped: API servers send fewer, and reading millions takes time."""

_NEXT_BRACKET: Final = re.compile(
    rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+"?+)*+(?P<bracket>[\[\]{}]?)', re.DOTALL
)
"""Matches up to a bracket outside strings, or to the end. It never fails, even in a string without an end: a
search that fails would be repeated from each of the next characters."""

_OPENING: Final = frozenset((b"[", b"{"))


def without_depths(text: bytes | bytearray) -> bytes:
    """Return JSON text in which null replaces every list and object nested deeper than LEVELS.

    Text that is invalid or truncated JSON remains so, and text with more levels than an API server accepts
    becomes so. This takes linear time.
    """
    return b"null".join(_structure(text))


def _structure(text: bytes | bytearray) -> Iterator[bytes | bytearray]:
    depth = start = 0
    for found in _NEXT_BRACKET.finditer(text):
        bracket = found["bracket"]
        if bracket in _OPENING:
            depth += 1
            if depth == LEVELS + 1:
                yield text[start : found.start("bracket")]
                start = len(text)
            elif depth > _MOST_LEVELS:
                return
        elif bracket:
            if depth == LEVELS + 1:
                start = found.end()
            depth -= 1
    yield text[start:]
