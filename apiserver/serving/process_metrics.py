"""Prometheus metrics of a process. Every label has a fixed, small set of values."""

from __future__ import annotations

import asyncio
import platform
from typing import TYPE_CHECKING

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    GCCollector,
    Histogram,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from apiserver.program import version

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

REQUEST_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
LAG_BUCKETS = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0)
LAG_PROBE_SECONDS = 0.5
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class _BuildInfo(Collector):
    """Build information, determined when scraped, since looking it up would delay the start."""

    def __init__(self, component: str) -> None:
        self._component = component

    def collect(self) -> Iterator[GaugeMetricFamily]:
        build = GaugeMetricFamily(
            "stowplan_build_info",
            "Always 1; the labels say what is running.",
            labels=["component", "version", "python"],
        )
        build.add_metric([self._component, version(), platform.python_version()], 1)
        yield build


class ProcessMetrics:
    """The registry of the process, with the metrics that all our processes have.

    Other metrics are added with `registry=metrics.registry`; nothing is global but that no metric of the
    process has a series of when it was created.
    """

    def __init__(self, component: str) -> None:
        """`component` is the subcommand, such as `webhooks`."""
        # The text format has no creation times: each counter would have a second series as a gauge.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # it has no annotations
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self.registry.register(_BuildInfo(component))
        self.certificate_end = Gauge(
            "stowplan_serving_certificate_not_after_timestamp_seconds",
            "When the certificate in service expires; 0 while there is none.",
            registry=self.registry,
        )
        self._requests = Counter(
            "stowplan_http_requests",
            "Requests answered, by route, method and status code.",
            ["route", "method", "code"],
            registry=self.registry,
        )
        self._durations = Histogram(
            "stowplan_http_request_duration_seconds",
            "Time from the headers of a request to its response, including its body and waits.",
            ["route"],
            buckets=REQUEST_BUCKETS,
            registry=self.registry,
        )
        self.requests_in_progress = 0
        """The number of requests that have arrived and are not answered yet."""
        Gauge(
            "stowplan_http_requests_in_progress",
            "Requests that have arrived and are not answered yet.",
            registry=self.registry,
        ).set_function(lambda: self.requests_in_progress)
        self._lag = Histogram(
            "stowplan_event_loop_lag_seconds",
            "How late the event loop ran a timer, probed twice a second.",
            buckets=LAG_BUCKETS,
            registry=self.registry,
        )

    def observe_request(self, route: str, method: str, *, code: int, seconds: float) -> None:
        """Count an answered request; `route` must be a pattern, never a path chosen by a client."""
        self._requests.labels(route, method if method in _METHODS else "other", str(code)).inc()
        self._durations.labels(route).observe(seconds)

    async def probe_lag(
        self,
        *,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] | None = None,
    ) -> None:
        """Measure the lag of the event loop, until cancelled."""
        clock = clock or asyncio.get_running_loop().time
        while True:
            due = clock() + LAG_PROBE_SECONDS
            await sleep(LAG_PROBE_SECONDS)
            self._lag.observe(max(clock() - due, 0.0))

    def exposition(self) -> bytes:
        """Return all metrics in Prometheus' text format (content type: `CONTENT_TYPE`)."""
        return generate_latest(self.registry)
