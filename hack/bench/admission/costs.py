"""What one case cost on one server: medians over rounds."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.load import Served
from hack.bench.percentiles import percentile

EMPTY: Final = "empty handler"
SERVERS: Final = (OURS, STRAIGHTFORWARD, EMPTY)

Key = tuple[str, str, str]
"""Case, verb and server."""

_MICRO: Final = 1e6


@dataclass(frozen=True, kw_only=True, slots=True)
class OverTls:
    """One case on one server process: all connections at once, then one alone."""

    cpu_us: float
    """CPU time of the server process per request, all connections busy: median of the rounds."""
    cpu_us_by_round: tuple[float, ...]
    lone_cpu_us: float
    """The same on one connection, where the server sleeps and wakes for each request."""
    requests: int
    requests_per_second: float
    server_busy: float
    lone_p50_us: float
    """Latency on one connection, from all rounds together."""
    lone_p99_us: float
    busy_p50_us: float
    """Latency with all connections busy: mostly waiting for the others."""
    busy_p99_us: float


def over_tls(busy: Sequence[Served], lone: Sequence[Served]) -> OverTls:
    """Sum up the rounds of one case on one server."""
    waits = [wait * _MICRO for served in busy for wait in served.latencies_seconds]
    alone = [wait * _MICRO for served in lone for wait in served.latencies_seconds]
    by_round = tuple(served.cpu_per_request_seconds * _MICRO for served in busy)
    return OverTls(
        cpu_us=statistics.median(by_round),
        cpu_us_by_round=by_round,
        lone_cpu_us=statistics.median(served.cpu_per_request_seconds for served in lone) * _MICRO,
        requests=sum(served.requests for served in busy),
        requests_per_second=statistics.median(served.requests_per_second for served in busy),
        server_busy=statistics.median(served.server_busy for served in busy),
        lone_p50_us=percentile(alone, 50),
        lone_p99_us=percentile(alone, 99),
        busy_p50_us=percentile(waits, 50),
        busy_p99_us=percentile(waits, 99),
    )


def table(costs: Mapping[Key, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return costs as rows of a results file."""
    return [
        {"case": case, "verb": verb, "server": server} | dict(cost)
        for (case, verb, server), cost in costs.items()
    ]
