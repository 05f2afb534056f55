"""Cost of each case on each server: interleaved measurement, summary over rounds, comparison."""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import numpy as np

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.in_process import Answerer, cpu_per_call_seconds, frozen_heap
from hack.calling.load import Served

T = TypeVar("T")
Key = tuple[Any, ...]
"""The attributes of a case; the last one is the server."""

MICRO: Final = 1e6


def by_turns(
    plan: Mapping[Key, Callable[[], T]], rounds: int, *, step: Callable[[str], None] | None = None
) -> dict[Key, list[T]]:
    """Run every entry once per round, every other round in reverse order; return the results of each."""
    taken: dict[Key, list[T]] = {key: [] for key in plan}
    for number in range(rounds):
        if step:
            step(f"over TLS: round {number + 1} of {rounds}")
        for key in list(plan)[:: 1 if number % 2 == 0 else -1]:
            taken[key].append(plan[key]())
    return taken


def in_process(
    asked: Mapping[Key, tuple[Answerer, Sequence[bytes]]], *, rounds: int, seconds: float
) -> dict[Key, float]:
    """Return the CPU time per call in µs: the median over rounds of `seconds` of CPU time each."""

    def run(handle: Answerer, bodies: Iterator[bytes]) -> Callable[[], float]:
        return lambda: cpu_per_call_seconds(handle, bodies, seconds=seconds)

    plan = {key: run(handle, itertools.cycle(bodies)) for key, (handle, bodies) in asked.items()}
    with frozen_heap():
        taken = by_turns(plan, rounds)
    return {key: statistics.median(spent) * MICRO for key, spent in taken.items()}


@dataclass(frozen=True, kw_only=True, slots=True)
class Summed:
    """Figures of a server process over all rounds of one case; medians of the rounds unless noted."""

    cpu_us: float
    """CPU time of the server process per request."""
    cpu_us_by_round: tuple[float, ...]
    requests: int
    """Requests of all rounds together."""
    requests_per_second: float
    server_busy: float
    p50_us: float
    """Latency over all rounds together, like p99."""
    p99_us: float


def summarize(rounds: Sequence[Served]) -> Summed:
    """Summarize the rounds of one case on one server."""
    waits = [wait * MICRO for served in rounds for wait in served.latencies_seconds]
    by_round = tuple(served.cpu_per_request_seconds * MICRO for served in rounds)
    p50, p99 = (float(value) for value in np.percentile(waits, (50, 99), method="inverted_cdf"))
    return Summed(
        cpu_us=statistics.median(by_round),
        cpu_us_by_round=by_round,
        requests=len(waits),
        requests_per_second=statistics.median(served.requests_per_second for served in rounds),
        server_busy=statistics.median(served.server_busy for served in rounds),
        p50_us=p50,
        p99_us=p99,
    )


def pairs(costs: Mapping[Key, T]) -> Iterator[tuple[Key, T, T]]:
    """Yield the attributes of each case without the server, our cost, and the straightforward server's."""
    for (*case, server), ours in costs.items():
        if server == OURS:
            yield (*case,), ours, costs[*case, STRAIGHTFORWARD]


def rows(names: Sequence[str], costs: Mapping[Key, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return the costs as rows of a results file; `names` are those of the cases' attributes."""
    return [dict(zip((*names, "server"), key, strict=True)) | dict(cost) for key, cost in costs.items()]
