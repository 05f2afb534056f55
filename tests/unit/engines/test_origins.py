"""Deduplication of series that Prometheus has from several scrape jobs, Services or replicas."""

from __future__ import annotations

import pytest

from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.prometheus_responses import of_one_origin, of_one_origin_each

WAITING = "vllm:num_requests_waiting"
RUNNING = "vllm:num_requests_running"


def scraped(age_seconds: float, waiting: float, **labels: str) -> tuple[list[Series], Series]:
    """Return the series of one scrape of one engine: two gauges, and the age of the first."""
    own = {"namespace": "ns", "pod": "p", "engine": "0", "model_name": "m"} | labels
    gauges = [Series(name=name, labels=own, value=waiting) for name in (WAITING, RUNNING)]
    return gauges, Series(name="", labels=own, value=age_seconds)


@pytest.mark.parametrize(
    ("scrapes", "want"),
    [
        pytest.param([scraped(3, 5, job="a")], ([5], 3), id="one job"),
        pytest.param(
            [scraped(9, 4, job="a", prometheus_replica="1"), scraped(3, 5, job="a", prometheus_replica="0")],
            ([5], 3),
            id="the more recent of two Prometheus replicas",
        ),
        pytest.param(
            [scraped(3, 5, job="b", instance="10.0.0.1:80"), scraped(3, 5, job="a", instance="10.0.0.1:80")],
            ([5], 3),
            id="the first of two jobs with equal ages",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80", service="headless"),
                scraped(4, 5, job="a", instance="10.0.0.1:80", service="clusterip"),
            ],
            ([5], 3),
            id="one endpoint scraped through two Services",
        ),
        pytest.param(
            [scraped(3, 5, job="a", instance="10.0.0.1:80"), scraped(7, 2, job="a", instance="10.0.0.1:81")],
            ([5, 2], 7),
            id="two ports of one job are two engines, and the older age counts",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80"),
                scraped(7, 2, job="a", instance="10.0.0.1:81"),
                scraped(1, 5, job="b", instance="10.0.0.1:80"),
            ],
            ([5, 2], 7),
            id="a job that covers all endpoints precedes a more recent one that does not",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80", endpoint="metrics", container="vllm"),
                scraped(2, 5, job="b", instance="10.0.0.1:80"),
            ],
            ([5], 2),
            id="two jobs that name the port of one address differently",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80", endpoint="metrics", container="vllm"),
                scraped(3, 5, job="a", instance="10.0.0.1:80", endpoint="http", container="vllm"),
            ],
            ([5], 3),
            id="one job that scrapes one address twice",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80", container="first"),
                scraped(3, 2, job="a", instance="10.0.0.1:81", container="second"),
            ],
            ([5, 2], 3),
            id="two containers of one pod are two engines",
        ),
        pytest.param(
            [scraped(3, 5, job="a", endpoint="metrics"), scraped(3, 2, job="a", endpoint="other")],
            ([5, 2], 3),
            id="two ports without addresses are two engines",
        ),
        pytest.param(
            [scraped(3, 5, job="a", priority="0"), scraped(3, 2, job="a", priority="9")],
            ([5, 2], 3),
            id="parts of a number",
        ),
        pytest.param(
            [scraped(3, 5, engine="0", job="a"), scraped(3, 2, engine="1", job="a")],
            ([5, 2], 3),
            id="two engines behind one endpoint",
        ),
    ],
)
def test_series_of_several_origins_are_counted_once(
    scrapes: list[tuple[list[Series], Series]], want: tuple[list[float], float]
) -> None:
    """The result does not depend on the order of the response."""
    for order in (scrapes, scrapes[::-1]):
        series = [item for gauges, _ in order for item in gauges]

        found, age_seconds = of_one_origin(series, [time for _, time in order])

        waiting = [item.value for item in found if item.name == WAITING]
        assert (sorted(waiting, reverse=True), age_seconds) == want
        assert len(found) == 2 * len(waiting)


def test_jobs_that_scrape_different_endpoints_are_rejected() -> None:
    """They may be one engine under two names, or two engines."""
    scrapes = [scraped(1, 5, job="a", instance="10.0.0.1:80"), scraped(1, 5, job="b", instance="chat-0")]

    with pytest.raises(UnreadableMetricsError, match="the jobs a and b scrape different endpoints"):
        of_one_origin([item for gauges, _ in scrapes for item in gauges], [time for _, time in scrapes])


def test_a_pod_without_a_scrape_time_is_rejected() -> None:
    """A value of unknown age is not usable."""
    gauges, _ = scraped(1, 5)

    with pytest.raises(UnreadableMetricsError, match="no series of vLLM or SGLang with this pod's name"):
        of_one_origin(gauges, [])


def gauge(name: str, value: float, **labels: str) -> Series:
    """Return one series of a pod."""
    return Series(name=name, labels={"namespace": "ns", "pod": "p"} | labels, value=value)


EACH = {
    "one job": ([gauge("q", 5, job="a")], [gauge("", 3, job="a")], ({"q": [5]}, 3)),
    "two series of one job are both kept": (
        [gauge("q", 5, job="a", engine="0"), gauge("q", 2, job="a", engine="1")],
        [gauge("", 3, job="a", engine="0"), gauge("", 3, job="a", engine="1")],
        ({"q": [5, 2]}, 3),
    ),
    "the more recent of two Prometheus replicas": (
        [gauge("q", 4, job="a", prometheus_replica="0"), gauge("q", 5, job="a", prometheus_replica="1")],
        [gauge("", 9, job="a", prometheus_replica="0"), gauge("", 3, job="a", prometheus_replica="1")],
        ({"q": [5]}, 3),
    ),
    "one endpoint scraped through two Services": (
        [gauge("q", 5, job="a", service="x"), gauge("q", 5, job="a", service="y")],
        [gauge("", 3, job="a", service="x"), gauge("", 3, job="a", service="y")],
        ({"q": [5]}, 3),
    ),
    "one job that scrapes one address twice": (
        [gauge("q", 5, instance="p:80", endpoint="x"), gauge("q", 5, instance="p:80", endpoint="y")],
        [gauge("", 3, instance="p:80", endpoint="x"), gauge("", 3, instance="p:80", endpoint="y")],
        ({"q": [5]}, 3),
    ),
    "two jobs that name the port of one address differently": (
        [gauge("q", 5, job="a", instance="p:80", endpoint="x"), gauge("q", 5, job="b", instance="p:80")],
        [gauge("", 3, job="a", instance="p:80", endpoint="x"), gauge("", 2, job="b", instance="p:80")],
        ({"q": [5]}, 2),
    ),
    "the job is chosen for each metric name": (
        [gauge("q", 5, job="a", instance="p:80"), gauge("r", 7, job="b", instance="p:81")],
        [gauge("", 3, job="a", instance="p:80"), gauge("", 8, job="b", instance="p:81")],
        ({"q": [5], "r": [7]}, 8),
    ),
    "jobs that scrape different endpoints": (
        [gauge("q", 5, job="a", instance="p:80"), gauge("q", 7, job="b", instance="p:81")],
        [gauge("", 3, job="a", instance="p:80"), gauge("", 3, job="b", instance="p:81")],
        ({}, 0),
    ),
}


@pytest.mark.parametrize(("series", "times", "want"), EACH.values(), ids=EACH.keys())
def test_series_of_any_exporter_are_counted_once(
    series: list[Series], times: list[Series], want: tuple[dict[str, list[float]], float]
) -> None:
    """Only the labels that Prometheus adds identify an origin; other labels are the exporter's."""
    counted, age_seconds = of_one_origin_each(series, times)

    found: dict[str, list[float]] = {}
    for item in counted:
        found.setdefault(item.name, []).append(item.value)
    assert (found, age_seconds) == want
