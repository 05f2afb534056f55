"""The frame of every run: CPU pinning, the machine's state at the start, and its pace during the run."""

from __future__ import annotations

import os
import statistics
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from hack.bench.machine import LOADS_US, Machine, Pace, loads_us, look
from hack.calling.cores import Cores
from hack.calling.received import model
from hack.calling.reviews import create


@dataclass(kw_only=True, slots=True)
class Frame:
    """A run in progress."""

    progress: Callable[[str], None]
    cores: Cores = field(default_factory=lambda: Cores.split(frozenset(os.sched_getaffinity(0))))
    before: Machine = field(default_factory=look)
    """The machine's state at the start of the run."""
    document: bytes = field(default_factory=lambda: create(model()))
    """The JSON document that is parsed to measure the pace."""
    loads: list[float] = field(default_factory=list)
    """CPU time of `json.loads` at each step so far, in µs."""
    failures: list[str] = field(default_factory=list)
    """Messages about requested measurements that are missing, with the reasons."""

    def step(self, text: str) -> None:
        """Report the next step, and measure the current pace of the machine."""
        self.progress(text)
        self.loads.append(loads_us(self.document))

    def pace(self) -> Pace:
        """Return the median pace of the steps so far. Raises StatisticsError before the first step."""
        return Pace(here_us=statistics.median(self.loads), there_us=LOADS_US)

    @contextmanager
    def pinned(self) -> Iterator[None]:
        """Pin the calling thread to the load's cores until the block ends."""
        allowed = os.sched_getaffinity(0)
        self.cores.pin_load()
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)
