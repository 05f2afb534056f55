"""CPU time of another process, as exactly as the scheduler knows it."""

from __future__ import annotations

import time
from typing import Final

_SCHEDULED: Final = 2


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far: all its threads, those that ended included.

    Exact to the nanosecond, where `/proc/PID/stat` counts ticks of 10 ms and `/proc/PID/schedstat` only the
    first thread. Raises OSError when there is no such process. The clock's number is that of
    clock_getcpuclockid(3).
    """
    return time.clock_gettime(((~pid) << 3) | _SCHEDULED)
