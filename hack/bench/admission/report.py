"""What a person reads: one table for each way of measuring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hack.bench.admission.api_server import MeanCall
from hack.bench.admission.costs import EMPTY, Key, OverTls
from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.goals import shown
from hack.bench.table import Row, aligned, ratio_of

T = TypeVar("T")


def in_process_table(costs: Mapping[Key, float]) -> list[str]:
    """Return the lines of the table of handlers alone."""
    head = ("in process, µs of CPU per call", "path", "stowplan", "straightforward", "ratio")
    rows = [
        (case, f"/{verb}", shown(ours), shown(plain), ratio_of(ours, plain))
        for case, verb, ours, plain in _pairs(costs)
    ]
    return aligned([head, *rows])


def tls_table(costs: Mapping[Key, OverTls], *, connections: int) -> list[str]:
    """Return the lines of the table of server processes, two or three lines a case."""
    head = (
        f"over TLS 1.3, {connections} connections",
        "path",
        "server",
        "CPU µs/request",
        "ratio",
        "requests/s",
        "core busy",
        "CPU µs alone",
        "p50 µs alone",
        "p99 µs alone",
    )
    rows: list[Row] = []
    for case, verb, ours, plain in _pairs(costs):
        rows.append((case, f"/{verb}", *_served(OURS, ours, ratio_of(ours.cpu_us, plain.cpu_us))))
        rows.append(("", "", *_served(STRAIGHTFORWARD, plain, "1")))
        if (empty := costs.get((case, verb, EMPTY))) is not None:
            rows.append(("", "", *_served(EMPTY, empty, ratio_of(empty.cpu_us, plain.cpu_us))))
    return aligned([head, *rows])


def api_server_table(calls: Sequence[MeanCall]) -> list[str]:
    """Return the lines of the API server's own account."""
    head = ("the API server's mean wait", "webhook", "operation", "calls", "ms")
    rows = [(call.kind, call.webhook, call.operation, str(call.calls), shown(call.mean_ms)) for call in calls]
    return aligned([head, *rows])


def _pairs(costs: Mapping[Key, T]) -> Iterator[tuple[str, str, T, T]]:
    for (case, verb, server), ours in costs.items():
        if server == OURS:
            yield case, verb, ours, costs[case, verb, STRAIGHTFORWARD]


def _served(name: str, cost: OverTls, ratio: str) -> Row:
    return (
        name,
        shown(cost.cpu_us),
        ratio,
        f"{cost.requests_per_second:.0f}",
        f"{cost.server_busy * 100:.0f} %",
        shown(cost.lone_cpu_us),
        f"{cost.lone_p50_us:.0f}",
        f"{cost.lone_p99_us:.0f}",
    )
