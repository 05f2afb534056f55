"""The machine, its load and its pace: the context of a measurement."""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

LOADS_US: Final = 40.8
"""CPU time of `json.loads` of the review of a Model's creation on the machine where goals were set, in µs."""

_CALLS: Final = 200
_LOOK_SECONDS: Final = 0.3
_PRESSURE: Final = Path("/proc/pressure/cpu")
_STEAL: Final = 7
_COUNTED: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The state of the machine at one moment."""

    processor: str
    cores: int
    python: str
    load_average: float
    """Average over the last minute."""
    pressure_percent: float | None
    """CPU pressure: share of the last 10 s in which a task waited for a core; None if not reported."""
    stolen_seconds: float
    """Steal time since boot, which the hypervisor gave to other machines."""
    core_seconds: float
    """Time of all cores since boot in any state, including idle."""

    def line(self) -> str:
        """Return the state as one line of text."""
        waiting = "unknown" if self.pressure_percent is None else f"{self.pressure_percent:.1f} %"
        return (
            f"{self.processor}, {self.cores} cores, Python {self.python}; load average"
            f" {self.load_average:.2f}, CPU pressure {waiting} of the last 10 s"
        )


def look() -> Machine:
    """Return the current state of the machine."""
    times = core_times(Path("/proc/stat").read_text(), os.sysconf("SC_CLK_TCK"))
    return Machine(
        processor=_processor(Path("/proc/cpuinfo").read_text(encoding="utf-8")),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        load_average=os.getloadavg()[0],
        pressure_percent=pressure_percent(_PRESSURE.read_text()) if _PRESSURE.exists() else None,
        stolen_seconds=times[_STEAL],
        core_seconds=sum(times),
    )


def busyness(states: Sequence[Machine]) -> str:
    """Return the load averages of all states, and the steal time from the first to the last, as one line."""
    loads = " to ".join(f"{state.load_average:.2f}" for state in states)
    first, last = states[0], states[-1]
    passed = last.core_seconds - first.core_seconds
    stolen = (last.stolen_seconds - first.stolen_seconds) / passed * 100 if passed else 0.0
    return f"load average {loads}, {stolen:.1f} % steal time"


def core_times(text: str, ticks_per_second: int) -> list[float]:
    """Return the columns of the first line of /proc/stat (all cores together) in seconds, without guests."""
    ticks = text.partition("\n")[0].split()[1 : _COUNTED + 1]
    return [int(tick) / ticks_per_second for tick in ticks]


def pressure_percent(text: str) -> float | None:
    """Return the 10 s average of the `some` line of a file in /proc/pressure, or None if it is missing."""
    for line in text.splitlines():
        kind, *members = line.split()
        if kind == "some":
            return float(dict(member.split("=") for member in members)["avg10"])
    return None


def _processor(text: str) -> str:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "model name":
            return value.strip()
    return platform.machine()


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """CPU time of a fixed task, `json.loads` of one document, here and on the machine of the goals, in µs."""

    here_us: float
    """Median over the steps of the run."""
    there_us: float

    @property
    def slowness(self) -> float:
        """Ratio of the time here to the time there."""
        return self.here_us / self.there_us

    def line(self) -> str:
        """Return the pace as one line of text."""
        return (
            f"json.loads of the large review takes {self.here_us:.0f} µs here, {self.there_us:.0f} µs on the"
            f" machine where the goals were set: {self.slowness:.1f} times as long"
        )


def loads_us(document: bytes) -> float:
    """Return the CPU time of `json.loads`, in µs: the least mean of several batches.

    A core that was idle takes up to twice as long for its first 0.2 s, which says nothing about the machine.
    """
    until, batches = time.monotonic() + _LOOK_SECONDS, list[float]()
    while not batches or time.monotonic() < until:
        began = time.thread_time()
        for _ in range(_CALLS):
            json.loads(document)
        batches.append((time.thread_time() - began) / _CALLS * 1e6)
    return min(batches)
