"""How fast this machine is beside the one that the goals in microseconds were set on."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass
from typing import Any, Final

LOADS_US: Final = 40.8
"""CPU time of `json.loads` of a create of the Model on the machine that the goals in µs were set on."""

_CALLS: Final = 200


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

    def as_json(self) -> dict[str, Any]:
        """Return the pace as a member of a results file."""
        return asdict(self) | {"slowness": self.slowness}


def loads_us(document: bytes) -> float:
    """Return the mean CPU time of `json.loads` now: on a shared machine it changes within minutes."""
    began = time.thread_time()
    for _ in range(_CALLS):
        json.loads(document)
    return (time.thread_time() - began) / _CALLS * 1e6
