"""Truncation of JSON text to a nesting depth that decoders support.

Decoders stop below a thousand levels, while API servers in Go accept ten thousand. Anything truncated is
nested far deeper than any declaration allows, so validation rejects the remainder at its field, together with
all other errors.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LEVELS: Final = 200
"""Nesting levels that are kept: more than a review, an object and free-form JSON need together."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{\]}]', re.DOTALL)
_OPENING: Final = frozenset((b"[", b"{"))


def without_depths(text: bytes) -> bytes:
    """Return JSON text in which null replaces every list and object nested deeper than LEVELS.

    Text that is invalid or truncated JSON remains so.
    """
    return b"null".join(_kept(text))


def _kept(text: bytes) -> Iterator[bytes]:
    depth = start = 0
    for found in _TOKEN.finditer(text):
        token = found.group()
        if token in _OPENING:
            depth += 1
            if depth == LEVELS + 1:
                yield text[start : found.start()]
                start = len(text)
        elif not token.startswith(b'"'):
            if depth == LEVELS + 1:
                start = found.end()
            depth -= 1
    yield text[start:]
