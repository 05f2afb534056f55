"""Simulated time derived from a monotonic clock."""

from __future__ import annotations

import time
from collections.abc import Callable


class SimulatedClock:
    """Stays at zero until it is released, then runs `speed` times as fast as `clock` (in seconds)."""

    def __init__(self, *, speed: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._clock = clock
        self._released: float | None = None

    def release(self) -> None:
        """Start the clock; no effect if it runs."""
        if self._released is None:
            self._released = self._clock()

    @property
    def seconds(self) -> float:
        """Simulated seconds since the release; 0.0 before it."""
        return 0.0 if self._released is None else (self._clock() - self._released) * self._speed

    @property
    def microseconds(self) -> int:
        """Simulated time in whole microseconds, the unit of the simulation."""
        return round(self.seconds * 1e6)
