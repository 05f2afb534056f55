"""CPU time of the conversion alone, bytes to bytes, both ways by turns in this process."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence
from typing import Final

from hack.bench.conversion.cases import ANSWERERS, Case, Key, key
from hack.bench.in_process import cpu_per_call_seconds, frozen_heap

_MICRO: Final = 1e6


def measure_in_process(cases: Sequence[Case], *, rounds: int, seconds: float) -> dict[Key, float]:
    """Return microseconds of CPU time per review: medians of rounds of so many seconds of CPU time each."""
    taken: dict[Key, list[float]] = {}
    with frozen_heap():
        for number in range(rounds):
            for case in cases:
                for server in list(ANSWERERS)[:: 1 if number % 2 == 0 else -1]:
                    bodies = itertools.repeat(case.bodies[server])
                    spent = cpu_per_call_seconds(ANSWERERS[server], bodies, seconds=seconds)
                    taken.setdefault(key(case, server), []).append(spent * _MICRO)
    return {of: statistics.median(spent) for of, spent in sorted_by(taken, cases).items()}


def sorted_by(taken: dict[Key, list[float]], cases: Sequence[Case]) -> dict[Key, list[float]]:
    """Return results in the order of the cases."""
    keys = [key(case, server) for case in cases for server in ANSWERERS]
    return {of: taken[of] for of in keys if of in taken}
