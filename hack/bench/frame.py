"""What surrounds every measuring: who runs on which core, the machine's state, and its pace meanwhile."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hack.bench.cores import Cores
from hack.bench.machine import LOADS_US, Machine, Pace, loads_us, look
from hack.bench.received import model
from hack.bench.reviews import create


@dataclass(kw_only=True, slots=True)
class Frame:
    """A run that is under way."""

    progress: Callable[[str], None]
    cores: Cores = field(default_factory=lambda: Cores.split(frozenset(os.sched_getaffinity(0))))
    before: Machine = field(default_factory=look)
    """As it was when the run began."""
    document: bytes = field(default_factory=lambda: create(model()))
    """What the pace is measured with."""
    loads: list[float] = field(default_factory=list)
    """Microseconds of `json.loads` at each step so far."""
    failures: list[str] = field(default_factory=list)
    """What is missing though it was asked for, and why."""

    def step(self, text: str) -> None:
        """Tell what comes next, and look how fast the machine is now."""
        self.progress(text)
        self.loads.append(loads_us(self.document))

    def pace(self) -> Pace:
        """Return the pace of the steps so far; raises StatisticsError before the first."""
        return Pace(here_us=statistics.median(self.loads), there_us=LOADS_US)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Keep this process on the load's cores until the end of the block."""
        allowed = os.sched_getaffinity(0)
        self.cores.pin_load()
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)
