"""Responses of Prometheus: duplicates of the same series, and jobs that cannot be trusted."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from support.served import served

from apiserver.schema.json import Json
from controller.engines.endpoints import question
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.metrics import Series
from controller.engines.prometheus import PrometheusSource
from controller.engines.prometheus_responses import forgeable_jobs, of_one_origin, of_one_origin_each

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


DISCOVERED: Json = {"source_labels": ["__meta_kubernetes_namespace"], "target_label": "namespace"}
COMPLETE: Json = {"separator": ";", "regex": "(.*)", "replacement": "$1", "action": "replace"}
ENFORCED: Json = {"target_label": "namespace", "replacement": "team"}
LABELS_OF_POD: Json = {"regex": "__meta_kubernetes_pod_label_(.+)", "action": "labelmap"}
MONITOR = "podMonitor/team/engines/0"

JOBS: dict[str, tuple[Json, bool]] = {
    "the namespace of the discovered pod": ({"relabel_configs": [DISCOVERED]}, True),
    "as Prometheus shows it, with defaults": ({"relabel_configs": [DISCOVERED | COMPLETE]}, True),
    "a rule without effect on labels behind it": (
        {"relabel_configs": [DISCOVERED, {"source_labels": ["pod"], "regex": "x", "action": "drop"}]},
        True,
    ),
    "labels of the pod before it": (
        {
            "relabel_configs": [
                {"regex": "__meta_kubernetes_pod_label_(.+)", "action": "labelmap"},
                DISCOVERED,
            ]
        },
        True,
    ),
    "labels of the pod behind it": (
        {
            "relabel_configs": [
                DISCOVERED,
                {"regex": "__meta_kubernetes_pod_label_(.+)", "action": "labelmap"},
            ]
        },
        False,
    ),
    "no label of the target": ({"relabel_configs": []}, False),
    "a label that is dropped again": (
        {"relabel_configs": [DISCOVERED, {"regex": "name.*", "action": "labeldrop"}]},
        False,
    ),
    "another label that is dropped": (
        {"relabel_configs": [DISCOVERED, {"regex": "uid", "action": "labeldrop"}]},
        True,
    ),
    "labels of the engine count": ({"relabel_configs": [DISCOVERED], "honor_labels": True}, False),
    "a series sets it": (
        {
            "relabel_configs": [DISCOVERED],
            "metric_relabel_configs": [
                {"source_labels": ["exported_namespace"], "target_label": "namespace"}
            ],
        },
        False,
    ),
    "a constant for the series, although their labels count": (
        {"honor_labels": True, "metric_relabel_configs": [ENFORCED]},
        True,
    ),
    "a constant that is only set sometimes": (
        {"metric_relabel_configs": [ENFORCED | {"source_labels": ["pod"], "regex": "x"}]},
        False,
    ),
    "a monitor that is enforced": (
        {"job_name": MONITOR, "honor_labels": True, "metric_relabel_configs": [ENFORCED]},
        True,
    ),
    "a monitor that sets another namespace": (
        {"job_name": MONITOR, "metric_relabel_configs": [ENFORCED | {"replacement": "victim"}]},
        False,
    ),
    "a monitor that is not enforced": ({"job_name": MONITOR, "relabel_configs": [DISCOVERED]}, False),
}


@pytest.mark.parametrize(("job", "is_enforced"), JOBS.values(), ids=JOBS.keys())
def test_the_last_rule_for_the_namespace_decides(job: Json, *, is_enforced: bool) -> None:
    """The owner of a monitor writes its rules, and those of a job are written by the administrator."""
    job = {"job_name": "pods"} | job

    assert forgeable_jobs(json.dumps({"scrape_configs": [job]})) == ([] if is_enforced else [job["job_name"]])


def test_files_with_more_jobs_are_not_trusted() -> None:
    """Prometheus does not show their content."""
    assert forgeable_jobs('{"scrape_config_files": ["more/*.yaml"]}') == ["more/*.yaml"]


@pytest.mark.parametrize("text", ["{", "[" * 5000, "a: b: c"])
def test_text_that_is_no_configuration_is_an_error(text: str) -> None:
    """Nothing is known about the jobs then."""
    with pytest.raises(UnreadableMetricsError):
        forgeable_jobs(text)


UNSAFE = json.dumps({"scrape_configs": [{"job_name": name} for name in ("kubelet", "pods")]})
ANSWERS: dict[str, tuple[int, str, frozenset[str], str]] = {
    "one job can claim any namespace": (
        200,
        UNSAFE,
        frozenset({"kubelet"}),
        "of the jobs pods of Prometheus",
    ),
    "all such jobs are trusted": (200, UNSAFE, frozenset({"kubelet", "pods"}), "Prometheus: "),
    "a server that does not tell": (
        404,
        "",
        frozenset(),
        "cannot be checked: UnreadableMetricsError: HTTP 404",
    ),
}


@pytest.mark.parametrize(("status", "text", "trusted", "why"), ANSWERS.values(), ids=ANSWERS.keys())
async def test_readings_are_refused_if_a_job_can_forge_them(
    status: int, text: str, trusted: frozenset[str], why: str
) -> None:
    """Those of engines and of endpoints of bindings. Trusted jobs are queried, which this server refuses."""

    async def answer(request: web.Request) -> web.Response:
        if request.path != "/api/v1/status/config":
            return web.Response(status=503)
        return web.json_response({"status": "success", "data": {"yaml": text}}, status=status)

    pod: Json = {"metadata": {"namespace": "ns", "name": "p"}}
    asked = question(pod, port=8000, path="/metrics", names=["m"])
    async with (
        served(answer, path="/{path:.*}") as port,
        PrometheusSource(f"http://127.0.0.1:{port}", trusted_jobs=trusted) as source,
    ):
        scraped, exposures = await source.scrape([pod]), await source.expose([asked])

    for reason in (scraped.failures["ns", "p"], exposures.failures[asked.endpoint]):
        assert why in reason
