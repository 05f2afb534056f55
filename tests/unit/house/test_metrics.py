"""The documentation of metrics, compared with the registered metrics."""

from __future__ import annotations

import re
from pathlib import Path

from prometheus_client import CollectorRegistry

from apiserver.serving.process_metrics import ProcessMetrics
from controller.binding_telemetry import BindingTelemetry
from controller.telemetry import Telemetry

TOP = Path(__file__).resolve().parents[3]
CODE = ("apiserver", "controller", "webhooks")
ROW = re.compile(r"^\| `(stowplan_\w+)` \| (gauge|counter|histogram) \| ", re.MULTILINE)
NAME = re.compile(r'"(stowplan_[a-z_]+)"')


def registered() -> dict[str, str]:
    """Return the type of every metric of the processes, by its name in a query."""
    registry = CollectorRegistry()
    ProcessMetrics("controller", "1", registry=registry)
    Telemetry(registry)
    BindingTelemetry(registry)
    return {
        family.name + ("_total" if family.type == "counter" else ""): family.type
        for family in registry.collect()
        if family.name.startswith("stowplan_")
    }


def test_the_page_lists_every_metric_and_no_other() -> None:
    """Each row has the metric's type and occurs once, since a duplicate could hide a missing row."""
    rows = ROW.findall((TOP / "docs" / "metrics.md").read_text("utf-8"))

    assert sorted(rows) == sorted(registered().items())


def test_every_metric_in_the_code_is_among_the_registered_ones() -> None:
    """Otherwise, `registered` would omit metrics that another class registers."""
    files = [file for folder in CODE for file in (TOP / folder).rglob("*.py")]
    named = {name for file in files for name in NAME.findall(file.read_text("utf-8"))}

    assert named == {name.removesuffix("_total") for name in registered()}
