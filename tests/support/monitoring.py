"""The shipped alerts and dashboard, and a page of metrics for which every panel has data."""

from __future__ import annotations

import json
import re
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client.metrics_core import Metric

TOP: Final = Path(__file__).resolve().parents[2]
PAGE: Final = TOP / "docs" / "metrics.md"
COMPONENTS: Final = TOP / "manifests" / "components"

_ROW: Final = re.compile(
    r"^\| `((?:stowplan|wva)_\w+)` \| (gauge|counter|histogram) \|([^|]*)\| ", re.MULTILINE
)
_VARIABLES: Final = {
    "$namespace_label": "exported_namespace",
    "$namespace": ".*",
    "$model": ".*",
    "$variant": ".*",
}
_VALUES: Final = {
    ("stowplan_cycles_total", "outcome"): "Failed",
    ("stowplan_policy_scale_writes_total", "outcome"): "failed",
    ("stowplan_http_requests_total", "code"): "503",
}
"""Values of labels that matter; any other label has its own name as its value."""
_SHORT_RATIO: Final = 0.5
_DAY_SECONDS: Final = 86_400


@dataclass(frozen=True, kw_only=True, slots=True)
class Documented:
    """A metric as documented."""

    name: str
    type: str
    labels: tuple[str, ...]


def documented() -> list[Documented]:
    """Return the rows of the page on metrics."""
    return [
        Documented(name=name, type=kind, labels=tuple(re.findall(r"\w+", labels)))
        for name, kind, labels in _ROW.findall(PAGE.read_text("utf-8"))
    ]


def alerts() -> list[dict[str, Any]]:
    """Return the rules of the shipped PrometheusRule."""
    text = (COMPONENTS / "alerts" / "prometheus-rule.yaml").read_text("utf-8")
    return [rule for group in yaml.safe_load(text)["spec"]["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    """Return the shipped dashboard."""
    found: dict[str, Any] = json.loads((COMPONENTS / "dashboards" / "stowplan.json").read_text("utf-8"))
    return found


def panel_queries() -> Mapping[str, str]:
    """Return the queries of the dashboard by panel and letter, with every variable at its default."""
    return {
        f"{panel['title']} {target['refId']}": _substituted(target["expr"])
        for panel in dashboard()["panels"]
        for target in panel.get("targets", ())
    }


def variable_queries() -> list[str]:
    """Return what the dashboard's variables list, with every other variable at its default."""
    listed = dashboard()["templating"]["list"]
    return [_substituted(it["query"]["query"]) for it in listed if it["type"] == "query"]


def _substituted(query: str) -> str:
    for name, value in _VARIABLES.items():
        query = query.replace(name, value)
    return query


class BadNews(Collector):
    """Every documented metric with one series, with bad values. Counters grow with each scrape."""

    def __init__(self) -> None:
        self._scrapes = 0

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics of one scrape."""
        self._scrapes += 1
        memory = GaugeMetricFamily("process_resident_memory_bytes", "Memory.")
        memory.add_metric([], 1)
        yield memory
        for metric in documented():
            yield self._family(metric)

    def _family(self, metric: Documented) -> Metric:
        labels = [_VALUES.get((metric.name, label), label) for label in metric.labels]
        if metric.type == "counter":
            name = metric.name.removesuffix("_total")
            counter = CounterMetricFamily(name, "A counter.", labels=metric.labels)
            counter.add_metric(labels, 10 * self._scrapes)
            return counter
        if metric.type == "histogram":
            histogram = HistogramMetricFamily(metric.name, "A histogram.", labels=metric.labels)
            buckets = [("10", 0.0), ("20", self._scrapes), ("+Inf", self._scrapes)]
            histogram.add_metric(labels, buckets=buckets, sum_value=20 * self._scrapes)
            return histogram
        gauge = GaugeMetricFamily(metric.name, "A gauge.", labels=metric.labels)
        gauge.add_metric(labels, _gauge_value(metric.name))
        return gauge


def _gauge_value(name: str) -> float:
    if name.endswith("_ratio"):
        return 1.0 if name == "stowplan_promised_ratio" else _SHORT_RATIO
    return time.time() + _DAY_SECONDS if name.endswith("_timestamp_seconds") else 1.0
