"""Says how far a run is, one line for what begins, what is on its way and what is done."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final, TextIO

_EVERY_SECONDS: Final = 1.0


class Progress:
    """Lines of progress on a stream; each is out at once, so that nobody wonders what a run is doing."""

    def __init__(self, stream: TextIO, *, steps: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._stream = stream
        self._steps = steps
        self._clock = clock
        self._step = 0
        self._told_at = clock()

    def begin(self, title: str) -> None:
        """Say that the next step begins."""
        self._step += 1
        self._told_at = self._clock()
        self._say(title)

    def tell(self, done: int, total: int) -> None:
        """Say how many objects are done of how many, once a second and at the end."""
        now = self._clock()
        if done == total or now - self._told_at >= _EVERY_SECONDS:
            self._told_at = now
            self._say(f"{done} of {total}")

    def end(self, result: str) -> None:
        """Say what the step did."""
        self._say(f"done: {result}")

    def _say(self, text: str) -> None:
        self._stream.write(f"[{self._step}/{self._steps}] {text}\n")
        self._stream.flush()
