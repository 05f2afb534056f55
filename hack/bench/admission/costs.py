"""What one case of admission cost on one server process."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hack.bench.costs import Summed


@dataclass(frozen=True, kw_only=True, slots=True)
class OverTls:
    """All connections at once, then one alone."""

    busy: Summed
    """Latency is mostly waiting for the others."""
    lone: Summed
    """The server sleeps and wakes for each request."""

    def as_json(self) -> Mapping[str, Any]:
        """Return it as a row of a results file."""
        busy, lone = asdict(self.busy), asdict(self.lone)
        waits = {f"busy_{name}": busy.pop(name) for name in ("p50_us", "p99_us")}
        return busy | {f"lone_{name}": lone[name] for name in ("cpu_us", "p50_us", "p99_us")} | waits
