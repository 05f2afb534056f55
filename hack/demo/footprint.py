"""What our processes took of the machine, and how long the API server waited for our webhooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from hack.controlplane.exposition import durations

_DURATIONS = {
    "apiserver_crd_conversion_webhook_duration_seconds": (),
    "apiserver_admission_webhook_admission_duration_seconds": ("name",),
}
"""Histograms of the API server, and the label that tells our webhooks apart."""


def resident_mebibytes(pid: int) -> float:
    """Return the resident memory of a process of ours. Raises OSError when it is gone."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0  # a process without memory of its own is ending


def mean_call_milliseconds(exposition: str) -> Iterator[tuple[str, int, float]]:
    """Yield webhook, number of calls and mean duration from the API server's metrics."""
    for histogram, labels in _DURATIONS.items():
        for names, (calls, seconds) in sorted(durations(exposition, histogram, *labels).items()):
            if calls:
                yield "".join(names) or "conversion", calls, seconds / calls * 1000
