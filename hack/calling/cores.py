"""CPU pinning, CPU time and memory of processes.

The measured server gets a core of its own, everything else shares the others.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

_SCHEDULED: Final = 2
_KIB_PER_MIB: Final = 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Cores:
    """Core numbers for servers and for the load; the same if only one core is available."""

    server: frozenset[int]
    load: frozenset[int]

    @classmethod
    def split(cls, available: frozenset[int]) -> Self:
        """Assign the lowest core to the servers, and the other available ones to the load."""
        first = frozenset({min(available)})
        return cls(server=first, load=(available - first) or first)

    def pin_server(self, pid: int) -> None:
        """Pin all threads of a process to the servers' core; threads that they start inherit this."""
        for thread in Path(f"/proc/{pid}/task").iterdir():
            os.sched_setaffinity(int(thread.name), self.server)

    def pin_load(self) -> None:
        """Pin the calling thread to the load's cores."""
        os.sched_setaffinity(0, self.load)


def cpu_seconds(pid: int) -> float:
    """Return the CPU time of a process so far: all its threads, including those that have ended.

    It has nanosecond resolution; `/proc/PID/stat` counts ticks of 10 ms, and `/proc/PID/schedstat` only the
    first thread. The clock id is that of clock_getcpuclockid(3). Raises OSError if there is no such process.
    """
    return time.clock_gettime(((~pid) << 3) | _SCHEDULED)


def memory_mebibytes(name: str, pid: int | None = None) -> float:
    """Return a field of /proc/PID/status in MiB: the resident memory `VmRSS`, or its peak `VmHWM`.

    Without a pid, it is that of this process. Raises OSError if the process has ended.
    """
    for line in Path(f"/proc/{pid or 'self'}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) / _KIB_PER_MIB
    raise OSError(f"process {pid} has no {name}: it is exiting")
