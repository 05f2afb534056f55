"""The documentation of metrics, the alerts and the dashboard, compared with the registered metrics."""

from __future__ import annotations

import re

from support.documents import anchors
from support.monitoring import PAGE, TOP, alerts, documented, panel_queries, variable_queries

from apiserver.metrics.index import SUBJECTS
from apiserver.serving.process_metrics import ProcessMetrics
from controller.bindings.telemetry import BindingTelemetry
from controller.variants.telemetry import Telemetry

CODE = ("apiserver", "controller", "webhooks")
NAME = re.compile(r'"(stowplan_[a-z_]+)"')
QUERIED = re.compile(r"stowplan_[a-z_]+")
RUNBOOK = re.compile(r"https://git\.example/stowplan/(docs/[\w/.-]+\.md)#([\w-]+)")


def registered() -> dict[str, str]:
    """Return the type of every metric of the processes, by its name in a query."""
    registry = ProcessMetrics("controller").registry
    Telemetry(registry)
    BindingTelemetry(registry)
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in registry.collect()
        if family.name.startswith(("stowplan_", "wva_"))
    }


def test_the_page_lists_every_metric_and_no_other() -> None:
    """Each row has the metric's type and occurs once, since a duplicate could hide a missing row."""
    rows = [(metric.name, metric.type) for metric in documented()]

    assert sorted(rows) == sorted(registered().items())


def test_every_external_metric_is_explained() -> None:
    """Its name is in one of the pages. It has no `stowplan_`, the prefix of metrics for Prometheus."""
    pages = "".join(path.read_text("utf-8") for path in (TOP / "docs").glob("**/*.md"))

    assert [name for name in SUBJECTS if f"`{name}`" not in pages or name.startswith("stowplan_")] == []


def test_every_metric_in_the_code_is_among_the_registered_ones() -> None:
    """Otherwise, `registered` would omit metrics that another class registers."""
    files = [file for folder in CODE for file in (TOP / folder).rglob("*.py")]
    named = {name for file in files for name in NAME.findall(file.read_text("utf-8"))}

    own = {name for name in registered() if name.startswith("stowplan_")}
    assert named == {name.removesuffix("_total") for name in own}


def test_alerts_and_dashboard_query_registered_metrics() -> None:
    """A query of a metric that does not exist returns nothing, so its alert would never fire."""
    queries = [*(rule["expr"] for rule in alerts()), *panel_queries().values(), *variable_queries()]
    queried = {name.removesuffix("_bucket") for query in queries for name in QUERIED.findall(query)}

    assert queried <= registered().keys()


def test_the_page_explains_every_alert_and_no_other() -> None:
    """Each has its severity; several alerts may share a row."""
    rows = re.findall(r"^\| (`Stowplan.*?) \| (\w+) \| ", PAGE.read_text("utf-8"), re.MULTILINE)
    explained = [(name, severity) for names, severity in rows for name in re.findall(r"`(\w+)`", names)]

    assert explained == [(rule["alert"], rule["labels"]["severity"]) for rule in alerts()]


def test_every_alert_says_what_to_do() -> None:
    """It has a summary, a description, and the URL of a section of the documentation that exists."""
    for rule in alerts():
        assert rule["annotations"].keys() == {"summary", "description", "runbook_url"}
        found = RUNBOOK.fullmatch(rule["annotations"]["runbook_url"])
        assert found, rule["alert"]
        assert found[2] in anchors(TOP / found[1]), rule["alert"]
