"""Durations of webhook calls in the API server's metrics."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from prometheus_client.parser import text_string_to_metric_families


def durations(exposition: str, name: str, *labels: str) -> Mapping[tuple[str, ...], tuple[int, float]]:
    """Return the number of calls and their total seconds by labels, from the histograms of a name."""
    wanted = "\n".join(line for line in exposition.splitlines() if line.startswith(name))
    totals: dict[tuple[str, ...], list[float]] = defaultdict(lambda: [0.0, 0.0])
    for family in text_string_to_metric_families(f"{wanted}\n"):
        for sample in family.samples:
            part = sample.name.removeprefix(name)
            if part in ("_count", "_sum"):
                key = tuple(sample.labels.get(label, "") for label in labels)
                totals[key][part == "_sum"] += sample.value
    return {key: (round(calls), seconds) for key, (calls, seconds) in totals.items()}


def conversions(exposition: str) -> tuple[int, float, int]:
    """Return the number of conversion calls, their total seconds, and the number of failed ones."""
    totals = durations(exposition, "apiserver_crd_conversion_webhook_duration_seconds", "succeeded")
    failed, _ = totals.get(("false",), (0, 0.0))
    return sum(calls for calls, _ in totals.values()), sum(spent for _, spent in totals.values()), failed
