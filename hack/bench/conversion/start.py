"""The time from the start of our process to its first response, for which reads wait after a restart."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from hack.bench.compared import OURS
from hack.bench.conversion.cases import Case
from hack.bench.goals import Goal
from hack.bench.table import align
from hack.bench.webhooks_process import running_servers
from hack.calling.conversion_reviews import SERVER_NAME, converted_objects, http_request
from hack.calling.cores import Cores, cpu_seconds

_MOST_SECONDS: Final = 0.5
_BEGAN: Final = 19
"""Index of `starttime` among the fields of `/proc/PID/stat` after the name: ticks since boot."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """One start of the process, until the first object is converted; its port is polled every 20 ms."""

    seconds: float
    cpu_seconds: float
    """CPU time of all its threads until then."""


def measure_starts(case: Case, *, count: int) -> list[Start]:
    """Start our process on all cores `count` times, after one warm-up start, and convert a case in each."""
    everywhere = frozenset(os.sched_getaffinity(0))
    cores = Cores(server=everywhere, load=everywhere)
    return [_start(http_request(case.bodies[OURS]), cores) for _ in range(count + 1)][1:]


def _start(request: bytes, cores: Cores) -> Start:
    with running_servers(cores, {}, server_name=SERVER_NAME, sections={}) as targets:
        answer = targets[OURS].first(request)
        pid = targets[OURS].process.pid
        started = Start(seconds=_age_seconds(pid), cpu_seconds=cpu_seconds(pid))
    converted_objects(answer.body)
    return started


def _age_seconds(pid: int) -> float:
    """Return the time since the start of a process, with a resolution of one tick, usually 10 ms."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[_BEGAN]) / os.sysconf("SC_CLK_TCK")


def starts_table(starts: Sequence[Start]) -> list[str]:
    """Return the lines of the table of starts."""
    head = ("start to first conversion", "starts", "median s", "longest s", "CPU s")
    seconds = [start.seconds for start in starts]
    cpu = statistics.median(start.cpu_seconds for start in starts)
    numbers = (statistics.median(seconds), max(seconds), cpu)
    return align([head, (OURS, str(len(starts)), *(f"{number:.2f}" for number in numbers))])


def start_goal(starts: Sequence[Start]) -> Goal:
    """Return the goal of the median start."""
    median = statistics.median(start.seconds for start in starts)
    return Goal(name="start_to_first_conversion", value=median, unit="s", most=_MOST_SECONDS)
