"""The printed tables: in process, over TLS, calls through the API server, and its restarts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.conversion.calls import READ_STORED, WRITE_STORED, Waits
from hack.bench.conversion.restarts import Restart
from hack.bench.costs import Key, Summed, pairs
from hack.bench.goals import short_number
from hack.bench.table import Columns, Row, align, ratio_of, table_lines

_IN_PROCESS: Final[Columns[tuple[Key, float, float]]] = (
    ("in process, CPU µs", lambda one: one[0][0]),
    ("objects", lambda one: str(one[0][1])),
    ("", lambda one: one[0][2]),
    (OURS, lambda one: short_number(one[1])),
    ("per object", lambda one: short_number(one[1] / one[0][1])),
    (STRAIGHTFORWARD, lambda one: short_number(one[2])),
    ("per object", lambda one: short_number(one[2] / one[0][1])),
    ("ratio", lambda one: ratio_of(one[1], one[2])),
)
OF_RESTARTS: Final[Columns[Restart]] = (
    ("restart of the API server with", lambda one: one.converter),
    ("ready s", lambda one: f"{one.live_seconds:.2f}"),
    ("reads served s", lambda one: f"{one.served_seconds:.2f}"),
    ("conversions", lambda one: str(one.conversions)),
    ("mean ms", lambda one: f"{one.mean_ms:.2f}"),
    ("failed", lambda one: str(one.failures)),
)


def in_process_table(costs: Mapping[Key, float]) -> list[str]:
    """Return the lines of the table of handlers without a server."""
    return table_lines(_IN_PROCESS, pairs(costs))


def tls_table(costs: Mapping[Key, Summed]) -> list[str]:
    """Return the lines of the table of server processes, two per case."""
    title = "over TLS 1.3, one connection"
    rows: list[Row] = [
        (title, "objects", "", "server", "CPU µs/request", "per object", "ratio", "p50 µs", "p99 µs")
    ]
    for (name, count, direction), ours, plain in pairs(costs):
        ratio = ratio_of(ours.cpu_us, plain.cpu_us)
        rows.append((name, str(count), direction, OURS, *_served_row(ours, count, ratio)))
        rows.append(("", "", "", STRAIGHTFORWARD, *_served_row(plain, count, "1")))
    return align(rows)


def calls_table(calls: Mapping[str, Waits]) -> list[str]:
    """Return the lines of the table of calls, with the ratio of each median to that without conversion."""
    head = ("through the API server", "calls", "p50 ms", "p99 ms", "p50 ratio")
    rows = []
    for name, taken in calls.items():
        base = calls[WRITE_STORED if name.startswith("PUT") else READ_STORED]
        ratio = f"{taken.p50_ms / base.p50_ms:.2f}"
        rows.append((name, str(taken.calls), short_number(taken.p50_ms), short_number(taken.p99_ms), ratio))
    return align([head, *rows])


def _served_row(cost: Summed, count: int, ratio: str) -> Row:
    waits = f"{cost.p50_us:.0f}", f"{cost.p99_us:.0f}"
    return short_number(cost.cpu_us), short_number(cost.cpu_us / count), ratio, *waits
