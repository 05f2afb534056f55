"""Remembers what a function says of short texts: names, labels and amounts are few and occur everywhere.

A long text is looked at each time, so what is remembered takes a megabyte at most, whatever arrives.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_MOST_TEXTS: Final = 4096
_LONGEST_CHARACTERS: Final = 128


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return a pure function of a text that remembers its last few thousand answers."""
    cached = functools.lru_cache(maxsize=_MOST_TEXTS)(function)

    @functools.wraps(function)
    def answer(text: str) -> T:
        return cached(text) if len(text) <= _LONGEST_CHARACTERS else function(text)

    return answer
