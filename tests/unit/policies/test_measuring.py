"""Metrics that pods expose, and the values that decisions use."""

from __future__ import annotations

import pytest
from prometheus_client.parser import text_string_to_metric_families

from controller.policies.measuring import (
    KEPT_SECONDS,
    MOST_LOOKS,
    ExposedMetric,
    PodExposure,
    PodMemory,
    exposed_values,
)

TEXT = """\
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0"} 3
vllm:num_requests_waiting{engine="1"} 4
# TYPE vllm:request_success_total counter
vllm:request_success_total{finished_reason="stop"} 100
vllm:request_success_total{finished_reason="length"} 20
# TYPE vllm:ttft histogram
vllm:ttft_bucket{engine="0",le="0.5"} 2
vllm:ttft_bucket{engine="0",le="+Inf"} 5
vllm:ttft_bucket{engine="1",le="0.5"} 1
vllm:ttft_bucket{engine="1",le="+Inf"} 1
vllm:ttft_count{engine="0"} 5
vllm:ttft_count{engine="1"} 1
vllm:ttft_sum{engine="0"} 7.5
vllm:ttft_sum{engine="1"} 0.25
# TYPE nonsense gauge
nonsense NaN
untyped_thing 8
"""
NAMED = {
    "vllm:num_requests_waiting": ExposedMetric(value=7),
    "vllm:request_success_total": ExposedMetric(value=120, is_counter=True),
    "vllm:request_success": ExposedMetric(value=120, is_counter=True),
    "vllm:ttft": ExposedMetric(buckets={0.5: 3, float("inf"): 6}),
    "vllm:ttft_count": ExposedMetric(value=6, is_counter=True),
    "vllm:ttft_sum": ExposedMetric(value=7.75, is_counter=True),
    "untyped_thing": ExposedMetric(value=8),
}


@pytest.mark.parametrize(("name", "want"), NAMED.items(), ids=NAMED.keys())
def test_series_are_found_by_the_metric_names_of_a_policy(name: str, want: ExposedMetric) -> None:
    """Series of the same name are added: two engines in a pod are one pod."""
    assert exposed_values(text_string_to_metric_families(TEXT), {name}) == {name: want}


def test_missing_series_and_nan_are_omitted() -> None:
    """A prefix of a name does not count either."""
    assert exposed_values(text_string_to_metric_families(TEXT), {"nonsense", "missing", "vllm"}) == {}


def play(*courses: tuple[float, ExposedMetric]) -> list[float | None]:
    """Return the value of a metric after each scrape."""
    memory, values = PodMemory(), []
    for seconds, item in courses:
        look = PodExposure(seconds, {"m": item})
        memory = memory.with_look(look)
        values.append(memory.values(look).get("m"))
    return values


def counter(value: float) -> ExposedMetric:
    """Return a counter."""
    return ExposedMetric(value=value, is_counter=True)


def test_a_gauge_counts_with_its_value() -> None:
    """It is known at the first scrape."""
    assert play((0, ExposedMetric(value=3)), (15, ExposedMetric(value=4))) == [3, 4]


def test_a_counter_counts_with_its_rate_over_a_minute() -> None:
    """It is unknown at first, then the rate over the available time, and never negative after a restart."""
    course = [(0.0, 0.0), (15.0, 30.0), (60.0, 120.0), (75.0, 300.0), (90.0, 5.0), (105.0, 20.0)]

    assert play(*((seconds, counter(value)) for seconds, value in course)) == [
        None,
        2.0,
        2.0,
        (300 - 30) / 60,
        None,
        1.0,
    ]


def test_a_histogram_counts_with_the_95th_percentile_of_its_increase() -> None:
    """Earlier counts do not matter; without an increase the value is zero."""

    def histogram(fast: float, all_: float) -> ExposedMetric:
        return ExposedMetric(buckets={0.5: fast, 1.0: all_, float("inf"): all_})

    assert play((0, histogram(50, 100)), (60, histogram(50, 110)), (120, histogram(50, 110))) == [
        None,
        1.0,
        0.0,
    ]


def test_a_histogram_with_changed_buckets_starts_again() -> None:
    """The engine was updated in place."""
    assert play(
        (0, ExposedMetric(buckets={float("inf"): 1})), (15, ExposedMetric(buckets={1.0: 1, float("inf"): 2}))
    ) == [None, None]


def test_the_number_of_stored_scrapes_of_a_pod_is_bounded() -> None:
    """They are limited by number and by age; gauges are not stored."""
    memory = PodMemory()
    for number in range(1000):
        memory = memory.with_look(
            PodExposure(number / 2, {"m": counter(number), "g": ExposedMetric(value=1)})
        )

    assert len(memory.looks) == MOST_LOOKS
    seldom = PodMemory()
    for number in range(100):
        seldom = seldom.with_look(PodExposure(15.0 * number, {"m": counter(number)}))
    assert [look.seconds for look in seldom.looks] == [1425.0, 1440.0, 1455.0, 1470.0, 1485.0]
    assert {name for look in memory.looks for name in look.exposed} == {"m"}
    memory = memory.with_look(PodExposure(1000 + KEPT_SECONDS, {}))
    assert len(memory.looks) == 1
