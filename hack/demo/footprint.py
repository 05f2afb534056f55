"""What our processes took of the machine, and how long the API server waited for our webhooks."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from collections.abc import Iterator

_DURATIONS = {
    "apiserver_admission_webhook_admission_duration_seconds": "name",
    "apiserver_crd_conversion_webhook_duration_seconds": "",
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
    wanted = "\n".join(line for line in exposition.splitlines() if line.startswith(tuple(_DURATIONS)))
    totals: dict[str, dict[str, float]] = defaultdict(lambda: {"_sum": 0.0, "_count": 0.0})
    for family in text_string_to_metric_families(wanted + "\n"):
        for sample in family.samples:
            for histogram, label in _DURATIONS.items():
                part = sample.name.removeprefix(histogram)
                if part in ("_sum", "_count"):
                    totals[sample.labels.get(label, "conversion")][part] += sample.value
    for name, total in sorted(totals.items()):
        if total["_count"]:
            yield name, int(total["_count"]), total["_sum"] / total["_count"] * 1000
