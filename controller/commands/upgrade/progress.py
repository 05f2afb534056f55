"""Progress output of a run: a line for each start, intermediate state and end of a step."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

_EVERY_SECONDS: Final = 1.0


class Progress:
    """Writes lines of progress to a stream, flushed at once."""

    def __init__(self, stream: TextIO, *, steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._steps = steps
        self._clock = clock
        self._step = 0
        self._told_at = clock()

    def begin(self, title: str) -> None:
        """Report that the next step begins."""
        self._step += 1
        self._told_at = self._clock()
        self._say(title)

    def tell(self, done: int, total: int, what: str) -> None:
        """Report how many of a kind are done, once a second and at the end."""
        now = self._clock()
        if done == total or now - self._told_at >= _EVERY_SECONDS:
            self._told_at = now
            self._say(f"{done} of {total} {what}")

    def end(self, result: str) -> None:
        """Report the result of the step."""
        self._say(f"done: {result}")

    def _say(self, text: str) -> None:
        self._stream.write(f"[{self._step}/{self._steps}] {text}\n")
        self._stream.flush()
