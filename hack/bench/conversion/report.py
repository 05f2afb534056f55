"""What a person reads: one table for each way of measuring."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from hack.bench.compared import OURS, STRAIGHTFORWARD
from hack.bench.conversion.calls import READ_STORED, WRITE_STORED
from hack.bench.conversion.cases import Key
from hack.bench.conversion.processes import OverTls
from hack.bench.conversion.restarts import Restart
from hack.bench.conversion.waits import Waits
from hack.bench.goals import shown
from hack.bench.table import Row, aligned, ratio_of

T = TypeVar("T")


def in_process_table(costs: Mapping[Key, float]) -> list[str]:
    """Return the lines of the table of conversion alone."""
    head = (
        "in process, CPU µs",
        "objects",
        "",
        "stowplan",
        "an object",
        "straightforward",
        "an object",
        "ratio",
    )
    rows = [
        (
            name,
            str(count),
            direction,
            shown(ours),
            shown(ours / count),
            shown(plain),
            shown(plain / count),
            ratio_of(ours, plain),
        )
        for name, count, direction, ours, plain in _pairs(costs)
    ]
    return aligned([head, *rows])


def tls_table(costs: Mapping[Key, OverTls]) -> list[str]:
    """Return the lines of the table of server processes, two lines a case."""
    head = (
        "over TLS 1.3, one connection",
        "objects",
        "",
        "server",
        "CPU µs/request",
        "an object",
        "ratio",
        "p50 µs",
        "p99 µs",
    )
    rows: list[Row] = []
    for name, count, direction, ours, plain in _pairs(costs):
        ratio = ratio_of(ours.cpu_us, plain.cpu_us)
        rows.append((name, str(count), direction, OURS, *_served(ours, count, ratio)))
        rows.append(("", "", "", STRAIGHTFORWARD, *_served(plain, count, "1")))
    return aligned([head, *rows])


def calls_table(calls: Mapping[str, Waits]) -> list[str]:
    """Return the lines of the table of calls to the API server, with what converting adds."""
    head = ("through the API server", "calls", "p50 ms", "p99 ms", "p50 ratio")
    rows = []
    for name, taken in calls.items():
        base = calls[WRITE_STORED if name.startswith("PUT") else READ_STORED]
        ratio = f"{taken.p50_ms / base.p50_ms:.2f}"
        rows.append((name, str(taken.calls), shown(taken.p50_ms), shown(taken.p99_ms), ratio))
    return aligned([head, *rows])


def restarts_table(restarts: Sequence[Restart]) -> list[str]:
    """Return the lines of the table of restarts, one line each."""
    head = ("restart of the API server with", "ready s", "reads served s", "conversions", "ms each", "failed")
    rows = [
        (
            item.converter,
            f"{item.live_seconds:.2f}",
            f"{item.served_seconds:.2f}",
            str(item.conversions),
            f"{item.mean_ms:.2f}",
            str(item.failures),
        )
        for item in restarts
    ]
    return aligned([head, *rows])


def _pairs(costs: Mapping[Key, T]) -> Iterator[tuple[str, int, str, T, T]]:
    for (name, count, direction, server), ours in costs.items():
        if server == OURS:
            yield name, count, direction, ours, costs[name, count, direction, STRAIGHTFORWARD]


def _served(cost: OverTls, count: int, ratio: str) -> Row:
    return (
        shown(cost.cpu_us),
        shown(cost.cpu_us / count),
        ratio,
        f"{cost.p50_us:.0f}",
        f"{cost.p99_us:.0f}",
    )
