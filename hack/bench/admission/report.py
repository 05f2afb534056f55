"""The cost of cases on server processes, and the printed tables: in process, over TLS, API server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from hack.bench.admission.api_server import MeanCall
from hack.bench.compared import EMPTY, OURS, STRAIGHTFORWARD
from hack.bench.costs import Key, Summed, pairs
from hack.bench.goals import short_number
from hack.bench.table import Columns, Row, align, ratio_of


@dataclass(frozen=True, kw_only=True, slots=True)
class OverTls:
    """Figures of a server with all connections at once, and with one connection alone."""

    busy: Summed
    """All connections at once: latency is mostly waiting for the other connections."""
    lone: Summed
    """One connection alone: the server sleeps and wakes up for each request."""

    def as_json(self) -> Mapping[str, Any]:
        """Return the figures as a row of a results file."""
        busy, lone = asdict(self.busy), asdict(self.lone)
        waits = {f"busy_{name}": busy.pop(name) for name in ("p50_us", "p99_us")}
        return busy | {f"lone_{name}": lone[name] for name in ("cpu_us", "p50_us", "p99_us")} | waits


_OF_SERVER: Final[Columns[OverTls]] = (
    ("requests/s", lambda cost: f"{cost.busy.requests_per_second:.0f}"),
    ("core busy", lambda cost: f"{cost.busy.server_busy * 100:.0f} %"),
    ("1 connection: CPU µs", lambda cost: short_number(cost.lone.cpu_us)),
    ("p50 µs", lambda cost: f"{cost.lone.p50_us:.0f}"),
    ("p99 µs", lambda cost: f"{cost.lone.p99_us:.0f}"),
)
OF_CALLS: Final[Columns[MeanCall]] = (
    ("webhook calls of the API server", lambda call: call.kind),
    ("webhook", lambda call: call.webhook),
    ("operation", lambda call: call.operation),
    ("calls", lambda call: str(call.calls)),
    ("mean ms", lambda call: short_number(call.mean_ms)),
)


def in_process_table(costs: Mapping[Key, float]) -> list[str]:
    """Return the lines of the table of handlers without a server."""
    head = ("in process, µs of CPU per call", "path", OURS, STRAIGHTFORWARD, "ratio")
    rows = [
        (case, f"/{verb}", short_number(ours), short_number(plain), ratio_of(ours, plain))
        for (case, verb), ours, plain in pairs(costs)
    ]
    return align([head, *rows])


def tls_table(costs: Mapping[Key, OverTls], *, connections: int) -> list[str]:
    """Return the lines of the table of server processes, two or three per case."""
    title = f"over TLS 1.3, {connections} connections"
    rows: list[Row] = [
        (title, "path", "server", "CPU µs/request", "ratio", *(head for head, _ in _OF_SERVER))
    ]
    for (case, verb), _, plain in pairs(costs):
        names = (case, f"/{verb}")
        for server in (OURS, STRAIGHTFORWARD, EMPTY):
            if (cost := costs.get((case, verb, server))) is not None:
                ratio = "1" if cost is plain else ratio_of(cost.busy.cpu_us, plain.busy.cpu_us)
                cells = (cell(cost) for _, cell in _OF_SERVER)
                rows.append((*names, server, short_number(cost.busy.cpu_us), ratio, *cells))
                names = ("", "")
    return align(rows)
