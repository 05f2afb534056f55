"""Cuts JSON text down to a depth that a decoder can take.

Decoders stop somewhere below a thousand levels, servers in Go take ten thousand. What is cut is nested far
deeper than any declaration allows, so the judge refuses what is left of it, at its field and beside all else
that is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

LEVELS: Final = 200
"""How many are left: more than a review, an object and free JSON take together."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"|[\[{\]}]', re.DOTALL)
_OPENING: Final = frozenset((b"[", b"{"))


def without_depths(text: bytes) -> bytes:
    """Return JSON text in which null stands for every list and object deeper than that many levels.

    Text that is no JSON, or ends early, remains so.
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
