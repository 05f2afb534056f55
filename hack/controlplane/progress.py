"""A progress line for long work."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from typing import TextIO


@dataclass(frozen=True, kw_only=True, slots=True)
class ProgressEstimate:
    """Progress of work with a known number of steps."""

    done: int
    total: int
    elapsed_seconds: float

    @property
    def left_seconds(self) -> float | None:
        """Estimated seconds left at the current pace; None while less than 2 % is done."""
        if self.done * 50 < self.total:
            return None
        return self.elapsed_seconds * max(self.total - self.done, 0) / self.done


def duration_text(seconds: float) -> str:
    """Return a duration in a readable form: `45 s`, `3 min 10 s`."""
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


class ProgressLine:
    """Rewrites one line on a terminal; writes a line from time to time to other streams."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._live = self._stream.isatty()
        self._interval_seconds = 0.2 if self._live else 20.0
        self._last_time = 0.0

    def update(self, text: str) -> None:
        """Show `text`, unless another text was shown very recently."""
        now = time.monotonic()
        if now - self._last_time < self._interval_seconds:
            return
        self._last_time = now
        self._stream.write(f"\r\x1b[K{text[:120]}" if self._live else f"{text}\n")
        self._stream.flush()

    def say(self, text: str) -> None:
        """Write a line that stays."""
        self._stream.write(f"\r\x1b[K{text}\n" if self._live else f"{text}\n")
        self._stream.flush()
        self._last_time = time.monotonic()
