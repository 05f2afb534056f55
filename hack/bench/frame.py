"""What surrounds every measuring: who runs on which core, the machine's state, and its pace meanwhile."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hack.bench.admission_reviews import create
from hack.bench.cores import Cores
from hack.bench.machine import Machine, look
from hack.bench.model import model
from hack.bench.pace import LOADS_US, Pace, loads_us


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    """A run that is under way."""

    cores: Cores
    before: Machine
    """As it was when the run began."""
    progress: Callable[[str], None]
    document: bytes = field(default_factory=lambda: create(model()))
    """What the pace is measured with."""
    loads: list[float] = field(default_factory=list)
    """Microseconds of `json.loads` at each step so far."""

    def step(self, text: str) -> None:
        """Tell what comes next, and look how fast the machine is now."""
        self.progress(text)
        self.loads.append(loads_us(self.document))

    def machine(self) -> tuple[Machine, Machine]:
        """Return the machine before and now."""
        return self.before, look()

    def pace(self) -> Pace:
        """Return the pace of the steps so far; raises StatisticsError before the first."""
        return Pace(here_us=statistics.median(self.loads), there_us=LOADS_US)


@contextmanager
def framed(*, progress: Callable[[str], None]) -> Iterator[Frame]:
    """Keep this process on the load's cores until the end of the block."""
    before = look()
    allowed = os.sched_getaffinity(0)
    frame = Frame(cores=Cores.split(frozenset(allowed)), before=before, progress=progress)
    frame.cores.pin_load()
    try:
        yield frame
    finally:
        os.sched_setaffinity(0, allowed)
