"""A cache for pure functions of short texts, such as names, quantities and selectors, which often recur.

Results for long texts are not cached, so a cache takes at most a few megabytes.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, TypeVar

T = TypeVar("T")

_MOST_TEXTS: Final = 4096
_LONGEST_CHARACTERS: Final = 128


class _Answers(dict[str, T]):
    """The latest few thousand results by text; a missing one is computed."""

    def __init__(self, function: Callable[[str], T]) -> None:
        super().__init__()
        self._function = function

    def __missing__(self, text: str) -> T:
        answer = self._function(text)
        if len(text) <= _LONGEST_CHARACTERS:
            while len(self) >= _MOST_TEXTS:
                with suppress(RuntimeError):  # another thread has changed it
                    self.pop(next(iter(self)), None)
            self[text] = answer
        return answer


def remember(function: Callable[[str], T]) -> Callable[[str], T]:
    """Return a pure function of a text with a cache of its latest few thousand results."""
    return _Answers(function).__getitem__
