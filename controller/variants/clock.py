"""Two clocks: a monotonic one for durations, and the wall clock for published times.

A rate is a difference of counters divided by a duration. With the wall clock, rates would be wrong in a cycle
in which that clock is set, and a model idle for a moment could seem to have been idle for hours.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from apiserver.cluster.lease import boot_time
from apiserver.log import EventLogger

_NOTEWORTHY_SECONDS: Final = 1.0

_log = EventLogger(__name__)


class SteadyClock:
    """Seconds since 1970: the wall clock at creation plus the time since then by the boot clock."""

    def __init__(
        self, *, wall: Callable[[], float] = time.time, boot: Callable[[], float] = boot_time
    ) -> None:
        self._boot = boot
        self._offset_seconds = wall() - boot()

    def seconds(self) -> float:
        """Return a time that is not affected by changes of the wall clock."""
        return self._offset_seconds + self._boot()


class ClockWatch:
    """Logs a warning when the wall clock was set."""

    def __init__(self) -> None:
        self._ahead_seconds: float | None = None

    def look(self, *, wall_seconds: float, steady_seconds: float) -> None:
        """Compare the clocks once per cycle."""
        ahead_seconds = wall_seconds - steady_seconds
        moved_seconds = ahead_seconds - (
            ahead_seconds if self._ahead_seconds is None else self._ahead_seconds
        )
        if abs(moved_seconds) >= _NOTEWORTHY_SECONDS:
            _log.warning(
                "the system clock was changed: rates and ages continue with elapsed time",
                by_seconds=round(moved_seconds, 1),
            )
        self._ahead_seconds = ahead_seconds
