"""Who runs on which core and how long: what is measured alone on one, everything else on the others."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_SCHEDULED: Final = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Core numbers for servers and for the load; the same where the machine has but one."""

    server: frozenset[int]
    load: frozenset[int]

    @classmethod
    def split(cls, available: frozenset[int]) -> Self:
        """Give the servers the first core and the load the rest of those available."""
        first = frozenset({min(available)})
        return cls(server=first, load=(available - first) or first)

    def pin_server(self, pid: int) -> None:
        """Keep every thread of a process, and those that they will start, on the servers' core."""
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), self.server)

    def pin_load(self) -> None:
        """Keep the calling thread on the load's cores."""
        os.sched_setaffinity(0, self.load)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far: all its threads, those that ended included.

    Exact to the nanosecond, where `/proc/PID/stat` counts ticks of 10 ms and `/proc/PID/schedstat` only the
    first thread. Raises OSError when there is no such process. The clock's number is that of
    clock_getcpuclockid(3).
    """
    return time.clock_gettime(((~pid) << 3) | _SCHEDULED)
