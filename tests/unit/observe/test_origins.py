"""Series that Prometheus has more than once count once."""

from __future__ import annotations

import pytest

from controller.observe.origins import of_one_origin, of_one_origin_each
from controller.observe.said import Series, UnreadableMetricsError

WAITING = "vllm:num_requests_waiting"
RUNNING = "vllm:num_requests_running"


def scraped(age_seconds: float, waiting: float, **labels: str) -> tuple[list[Series], Series]:
    """Return what one scrape of one engine left behind: two gauges, and the age of the first."""
    own = {"namespace": "ns", "pod": "p", "engine": "0", "model_name": "m"} | labels
    gauges = [Series(name=name, labels=own, value=waiting) for name in (WAITING, RUNNING)]
    return gauges, Series(name="", labels=own, value=age_seconds)


@pytest.mark.parametrize(
    ("scrapes", "want"),
    [
        pytest.param([scraped(3, 5, job="a")], ([5], 3), id="one job"),
        pytest.param(
            [
                scraped(9, 4, job="a", prometheus_replica="1"),
                scraped(3, 5, job="a", prometheus_replica="0"),
            ],
            ([5], 3),
            id="of two Prometheus replicas the fresher one",
        ),
        pytest.param(
            [scraped(3, 5, job="b", instance="10.0.0.1:80"), scraped(3, 5, job="a", instance="10.0.0.1:80")],
            ([5], 3),
            id="of two jobs as fresh as each other the first one",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80", service="headless"),
                scraped(4, 5, job="a", instance="10.0.0.1:80", service="clusterip"),
            ],
            ([5], 3),
            id="by way of two Services",
        ),
        pytest.param(
            [scraped(3, 5, job="a", instance="10.0.0.1:80"), scraped(7, 2, job="a", instance="10.0.0.1:81")],
            ([5, 2], 7),
            id="two ports of one job are two engines, as old as the older",
        ),
        pytest.param(
            [
                scraped(3, 5, job="a", instance="10.0.0.1:80"),
                scraped(7, 2, job="a", instance="10.0.0.1:81"),
                scraped(1, 5, job="b", instance="10.0.0.1:80"),
            ],
            ([5, 2], 7),
            id="a job that sees everything goes before a fresher one that does not",
        ),
        pytest.param(
            [scraped(3, 5, engine="0", job="a"), scraped(3, 2, engine="1", job="a")],
            ([5, 2], 3),
            id="two engines behind one endpoint",
        ),
    ],
)
def test_one_origin_counts(
    scrapes: list[tuple[list[Series], Series]], want: tuple[list[float], float]
) -> None:
    """Whatever order Prometheus answers in."""
    for order in (scrapes, scrapes[::-1]):
        series = [item for gauges, _ in order for item in gauges]

        found, age_seconds = of_one_origin(series, [time for _, time in order])

        waiting = [item.value for item in found if item.name == WAITING]
        assert (sorted(waiting, reverse=True), age_seconds) == want
        assert len(found) == 2 * len(waiting)


def test_origins_that_see_other_endpoints_each_are_refused() -> None:
    """They may be one engine under two names, or two engines."""
    scrapes = [scraped(1, 5, job="a", instance="10.0.0.1:80"), scraped(1, 5, job="b", instance="chat-0")]

    with pytest.raises(UnreadableMetricsError, match="the jobs a and b scrape different endpoints"):
        of_one_origin([item for gauges, _ in scrapes for item in gauges], [time for _, time in scrapes])


def test_a_pod_without_a_time_is_not_known() -> None:
    """A value of unknown age is none."""
    gauges, _ = scraped(1, 5)

    with pytest.raises(UnreadableMetricsError, match="no series with this pod's name"):
        of_one_origin(gauges, [])


def gauge(name: str, value: float, **labels: str) -> Series:
    """Return a series of one pod."""
    return Series(name=name, labels={"namespace": "ns", "pod": "p"} | labels, value=value)


EACH = {
    "one job": ([gauge("q", 5, job="a")], [gauge("", 3, job="a")], ({"q": [5]}, 3)),
    "two series of one job add up": (
        [gauge("q", 5, job="a", engine="0"), gauge("q", 2, job="a", engine="1")],
        [gauge("", 3, job="a", engine="0"), gauge("", 3, job="a", engine="1")],
        ({"q": [5, 2]}, 3),
    ),
    "of two Prometheus replicas the fresher one": (
        [gauge("q", 4, job="a", prometheus_replica="0"), gauge("q", 5, job="a", prometheus_replica="1")],
        [gauge("", 9, job="a", prometheus_replica="0"), gauge("", 3, job="a", prometheus_replica="1")],
        ({"q": [5]}, 3),
    ),
    "by way of two Services": (
        [gauge("q", 5, job="a", service="x"), gauge("q", 5, job="a", service="y")],
        [gauge("", 3, job="a", service="x"), gauge("", 3, job="a", service="y")],
        ({"q": [5]}, 3),
    ),
    "each name by its own job": (
        [gauge("q", 5, job="a", instance="p:80"), gauge("r", 7, job="b", instance="p:81")],
        [gauge("", 3, job="a", instance="p:80"), gauge("", 8, job="b", instance="p:81")],
        ({"q": [5], "r": [7]}, 8),
    ),
    "jobs that see other endpoints each": (
        [gauge("q", 5, job="a", instance="p:80"), gauge("q", 7, job="b", instance="p:81")],
        [gauge("", 3, job="a", instance="p:80"), gauge("", 3, job="b", instance="p:81")],
        ({}, 0),
    ),
}


@pytest.mark.parametrize(("series", "times", "want"), EACH.values(), ids=EACH.keys())
def test_series_of_any_exporter_count_once(
    series: list[Series], times: list[Series], want: tuple[dict[str, list[float]], float]
) -> None:
    """By the labels that Prometheus gives; other labels are the exporter's own."""
    counted, age_seconds = of_one_origin_each(series, times)

    found: dict[str, list[float]] = {}
    for item in counted:
        found.setdefault(item.name, []).append(item.value)
    assert (found, age_seconds) == want
