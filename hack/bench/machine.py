"""The machine and its mood: what one must know to read a measurement."""

from __future__ import annotations

import os
import platform
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

_PRESSURE: Final = Path("/proc/pressure/cpu")
_CPU_INFO: Final = Path("/proc/cpuinfo")


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

    def line(self) -> str:
        """Return one line for people."""
        waiting = "unknown" if self.pressure_percent is None else f"{self.pressure_percent:.1f} %"
        return (
            f"{self.processor}, {self.cores} cores, Python {self.python}; load average"
            f" {self.load_average:.2f}, waiting for a core {waiting} of the last 10 s"
        )

    def as_json(self) -> dict[str, Any]:
        """Return the state as a member of a results file."""
        return asdict(self)


def look() -> Machine:
    """Return the machine as it is now."""
    return Machine(
        processor=_processor(_CPU_INFO.read_text(encoding="utf-8") if _CPU_INFO.exists() else ""),
        cores=os.cpu_count() or 1,
        python=platform.python_version(),
        load_average=os.getloadavg()[0],
        pressure_percent=pressure_percent(_PRESSURE.read_text()) if _PRESSURE.exists() else None,
    )


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
