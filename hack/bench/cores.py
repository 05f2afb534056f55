"""Who runs on which core: what is measured alone on one, everything else on the others."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self


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
