"""Raw JSON, untyped, which is the only place where `Any` is used; and its truncation to a nesting depth.

Decoders stop below a thousand levels, while API servers in Go accept ten thousand. One such object would hide
all others of its list. Only metadata and free-form JSON can be nested so deeply: an API server removes what a
schema does not declare.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

Json = dict[str, Any]
"""A JSON object as received: untyped, with unknown members preserved."""

JsonValue = Any
"""Any JSON value: object, array, string, number, boolean or null."""


def as_object(value: JsonValue) -> Json:
    """Return a value if it is an object; otherwise an empty object."""
    return value if isinstance(value, dict) else {}


def as_list(value: JsonValue) -> list[JsonValue]:
    """Return a value if it is a list; otherwise an empty list."""
    return value if isinstance(value, list) else []


def without(value: Json, names: Iterable[str]) -> Json:
    """Return an object without some of its members."""
    rest = dict(value)
    for name in names:
        rest.pop(name, None)
    return rest


def same(one: JsonValue, other: JsonValue) -> bool:
    """Tell whether two JSON values are equal; unlike in Python, true is not 1 and 1.0 is not 1."""
    if one is other:
        return True
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(item, other[key]) for key, item in one.items())
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


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
    for match in _NEXT_BRACKET.finditer(text):
        bracket = match["bracket"]
        if bracket in _OPENING:
            depth += 1
            if depth == LEVELS + 1:
                yield text[start : match.start("bracket")]
                start = len(text)
            elif depth > _MOST_LEVELS:
                return
        elif bracket:
            if depth == LEVELS + 1:
                start = match.end()
            depth -= 1
    yield text[start:]
