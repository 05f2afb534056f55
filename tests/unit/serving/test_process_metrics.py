"""Prometheus metrics of a process."""

from __future__ import annotations

import asyncio

import pytest
from prometheus_client.parser import text_string_to_metric_families

from apiserver.serving.process_metrics import ProcessMetrics


def samples(metrics: ProcessMetrics) -> dict[tuple[str, tuple[str, ...]], float]:
    """Return the exposition's values by name and sorted label values."""
    families = text_string_to_metric_families(metrics.exposition().decode())
    return {
        (sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
        for family in families
        for sample in family.samples
    }


def test_metrics_of_two_registries_are_separate() -> None:
    """No registry is global."""
    a, b = ProcessMetrics("a"), ProcessMetrics("b")
    a.observe_request("/x", "GET", code=200, seconds=0.1)

    assert ("stowplan_http_requests_total", ("200", "GET", "/x")) in samples(a)
    assert ("stowplan_http_requests_total", ("200", "GET", "/x")) not in samples(b)


def test_requests_are_counted_and_timed() -> None:
    """Requests are counted by route, method and code, and timed by route."""
    metrics = ProcessMetrics("a")
    for code in (200, 200, 500):
        metrics.observe_request("/x", "GET", code=code, seconds=0.003)
    values = samples(metrics)

    assert values["stowplan_http_requests_total", ("200", "GET", "/x")] == 2
    assert values["stowplan_http_requests_total", ("500", "GET", "/x")] == 1
    assert values["stowplan_http_request_duration_seconds_count", ("/x",)] == 3
    assert values["stowplan_http_request_duration_seconds_bucket", ("0.0025", "/x")] == 0
    assert values["stowplan_http_request_duration_seconds_bucket", ("0.005", "/x")] == 3


def test_unknown_methods_share_one_label_value() -> None:
    """Clients cannot create series without limit."""
    metrics = ProcessMetrics("a")
    for number in range(100):
        metrics.observe_request("unmatched", f"METHOD{number}", code=405, seconds=0.0)

    assert samples(metrics)["stowplan_http_requests_total", ("405", "other", "unmatched")] == 100


def test_build_information_and_process_metrics_exist_from_the_start() -> None:
    """The expiry of the certificate is 0 until there is one."""
    values = samples(ProcessMetrics("webhooks"))

    assert any(name == "stowplan_build_info" and "webhooks" in labels for name, labels in values)
    assert values["process_resident_memory_bytes", ()] > 0
    assert values["stowplan_serving_certificate_not_after_timestamp_seconds", ()] == 0


async def test_event_loop_lag_is_the_delay_of_a_timer() -> None:
    """A clock set back counts as no delay."""
    moments = iter([0.0, 0.5, 10.0, 13.5, 20.0, 19.0])
    rounds: list[float] = []

    async def sleep(seconds: float) -> None:
        rounds.append(seconds)
        if len(rounds) > 3:
            raise asyncio.CancelledError

    metrics = ProcessMetrics("a")
    with pytest.raises(asyncio.CancelledError):
        await metrics.probe_lag(sleep=sleep, clock=lambda: next(moments, 30.0))
    values = samples(metrics)

    assert values["stowplan_event_loop_lag_seconds_sum", ()] == pytest.approx(3.0)
    assert values["stowplan_event_loop_lag_seconds_count", ()] == 3


def test_counters_have_no_series_of_their_creation() -> None:
    """Each would be a second series of the counter or histogram, as a gauge."""
    metrics = ProcessMetrics("a")
    metrics.observe_request("/x", "GET", code=200, seconds=0.1)

    assert [name for name, _ in samples(metrics) if name.endswith("_created")] == []
