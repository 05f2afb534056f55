"""Remembers what a function says of short texts: names, labels and amounts are few and occur everywhere.

A long text is looked at each time, so what is remembered takes a megabyte at most, whatever arrives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

T = TypeVar("T")

_MOST_TEXTS: Final = 4096
_LONGEST_CHARACTERS: Final = 128


class _Answers(dict[str, T]):
    """The last few thousand answers by text; a text that is not there is asked about."""

    def __init__(self, function: Callable[[str], T]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> T:
        answer = self._function(text)
        if len(text) <= _LONGEST_CHARACTERS:
            while len(self) >= _MOST_TEXTS:
                self.pop(next(iter(self)), None)
            self[text] = answer
        return answer


def remembered(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return a pure function of a text that remembers its last few thousand answers."""
    return _Answers(function).__getitem__
