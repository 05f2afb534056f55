"""Durations of webhook calls by the API server."""

from __future__ import annotations

from collections.abc import Iterator

from hack.controlplane.exposition import durations

_DURATIONS = {
    "apiserver_crd_conversion_webhook_duration_seconds": (),
    "apiserver_admission_webhook_admission_duration_seconds": ("name",),
}
"""Histograms of the API server, with the label that identifies our webhooks."""


def mean_call_milliseconds(exposition: str) -> Iterator[tuple[str, int, float]]:
    """Yield webhook, number of calls and mean duration in milliseconds from the API server's metrics."""
    for histogram, labels in _DURATIONS.items():
        for names, (calls, seconds) in sorted(durations(exposition, histogram, *labels).items()):
            if calls:
                yield "".join(names) or "conversion", calls, seconds / calls * 1000
