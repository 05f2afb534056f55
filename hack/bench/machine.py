"""The machine, its mood and its pace: what one must know to read a measurement."""

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
"""CPU time of `json.loads` of a create of the Model on the machine that the goals in µs were set on."""

_CALLS: Final = 200
_PRESSURE: Final = Path("/proc/pressure/cpu")
_CPU_INFO: Final = Path("/proc/cpuinfo")
_TIMES: Final = Path("/proc/stat")
_STEAL: Final = 7
_COUNTED: Final = 8


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """The machine at one moment."""

    processor: str
    cores: int
    python: str
    load_average: float
    """Of the last minute."""
    pressure_percent: float | None
    """Share of the last 10 s in which something waited for a core; None where the kernel does not say."""
    stolen_seconds: float | None = None
    """CPU time since its start that the host gave to other machines; None where the kernel does not say."""
    core_seconds: float | None = None
    """CPU time since its start, of all cores, whatever was done with it."""

    def line(self) -> str:
        """Return one line for people."""
        waiting = "unknown" if self.pressure_percent is None else f"{self.pressure_percent:.1f} %"
        return (
            f"{self.processor}, {self.cores} cores, Python {self.python}; load average"
            f" {self.load_average:.2f}, waiting for a core {waiting} of the last 10 s"
        )


def look() -> Machine:
    """Return the machine as it is now."""
    times = core_times(_TIMES.read_text(), os.sysconf("SC_CLK_TCK")) if _TIMES.exists() else []
    return Machine(
        processor=_processor(_CPU_INFO.read_text(encoding="utf-8") if _CPU_INFO.exists() else ""),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        load_average=os.getloadavg()[0],
        pressure_percent=pressure_percent(_PRESSURE.read_text()) if _PRESSURE.exists() else None,
        stolen_seconds=times[_STEAL] if times else None,
        core_seconds=sum(times) if times else None,
    )


def busyness(states: Sequence[Machine]) -> str:
    """Return how busy the machine was from its first look to its last, as one line for people."""
    loads = " to ".join(f"{state.load_average:.2f}" for state in states)
    return f"load average {loads}, {_stolen_share(states)} of its time taken by the host for others"


def _stolen_share(states: Sequence[Machine]) -> str:
    first, last = states[0], states[-1]
    if first.stolen_seconds is None or last.stolen_seconds is None:
        return "an unknown share"
    passed = (last.core_seconds or 0.0) - (first.core_seconds or 0.0)
    return f"{(last.stolen_seconds - first.stolen_seconds) / passed * 100 if passed else 0.0:.1f} %"


def core_times(text: str, ticks_per_second: int) -> list[float]:
    """Return seconds of all cores by the columns of the first line of /proc/stat, guests left out."""
    ticks = text.partition("\n")[0].split()[1 : _COUNTED + 1]
    return [int(tick) / ticks_per_second for tick in ticks]


def pressure_percent(text: str) -> float | None:
    """Return the 10 s average of the `some` line of a file in /proc/pressure, or None without one."""
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
    """CPU time of one fixed piece of work: `json.loads` of the same document, here and there."""

    here_us: float
    """Median of several moments of the run."""
    there_us: float

    @property
    def slowness(self) -> float:
        """How many times longer this machine takes."""
        return self.here_us / self.there_us

    def line(self) -> str:
        """Return one line for people."""
        return (
            f"json.loads of the large review takes {self.here_us:.0f} µs here, {self.there_us:.0f} µs on the"
            f" machine that the goals in µs were set on: {self.slowness:.1f} times as long"
        )


def loads_us(document: bytes) -> float:
    """Return the mean CPU time of `json.loads` now: on a shared machine it changes within minutes."""
    began = time.thread_time()
    for _ in range(_CALLS):
        json.loads(document)
    return (time.thread_time() - began) / _CALLS * 1e6
