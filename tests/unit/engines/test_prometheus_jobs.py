"""Jobs of Prometheus whose series can claim to be those of another namespace."""

from __future__ import annotations

import json

import pytest
from aiohttp import web
from support.served import served

from apiserver.schema.json import Json
from controller.engines.endpoints import question
from controller.engines.exposition import UnreadableMetricsError
from controller.engines.prometheus import PrometheusSource
from controller.engines.prometheus_responses import forgeable_jobs

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
