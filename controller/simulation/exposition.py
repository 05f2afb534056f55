"""The metrics of a server's engines in Prometheus' text format, under vLLM's names.

Both names of the time between tokens are served, because releases differ: `vllm:inter_token_latency_seconds`
replaced `vllm:time_per_output_token_seconds`, and for a while vLLM itself served both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from controller.simulation.measures import Histogram
    from controller.simulation.server import Server

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Media type of the result of `exposition`."""

_LABELS = ("model_name", "engine")


class EngineCollector(Collector):
    """Metric families of the engines of one server, read at the time of the scrape.

    Every series has the label `engine`, the rank, and all but `vllm:cache_config_info` have `model_name`:
    vLLM's own info series does not name the model either.
    """

    def __init__(self, server: Server) -> None:
        self._server = server

    def collect(self) -> Iterator[Metric]:
        """Yield all families: gauges, counters, histograms."""
        yield from _gauges(self._server)
        yield _cache_config(self._server)
        yield from _counters(self._server)
        yield from _histograms(self._server)


def exposition(server: Server) -> bytes:
    """Return the metrics of a server's engines in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(server))
    return generate_latest(registry)


def _labels(server: Server, rank: int) -> tuple[str, str]:
    return server.profile.model_id, str(rank)


def _gauges(server: Server) -> Iterator[Metric]:
    for name, documentation, values in (
        ("vllm:num_requests_running", "Requests in the running batch.", [e.running for e in server.ranks]),
        ("vllm:num_requests_waiting", "Requests in the queue.", [e.waiting for e in server.ranks]),
        (
            "vllm:kv_cache_usage_perc",
            "Taken share of the KV cache, 0 to 1.",
            [e.kv_usage for e in server.ranks],
        ),
    ):
        family = GaugeMetricFamily(name, documentation, labels=_LABELS)
        for rank, value in enumerate(values):
            family.add_metric(_labels(server, rank), value)
        yield family


def _cache_config(server: Server) -> Metric:
    profile = server.profile
    family = GaugeMetricFamily(
        "vllm:cache_config_info", "Size of the KV cache.", labels=("engine", "block_size", "num_gpu_blocks")
    )
    for rank in range(profile.ranks):
        family.add_metric((str(rank), str(profile.block_size), str(profile.num_gpu_blocks)), 1)
    return family


def _counters(server: Server) -> Iterator[Metric]:
    measures = [engine.measures for engine in server.ranks]
    for name, documentation, values in (
        ("vllm:prompt_tokens", "Prompt tokens whose prefill has ended.", [m.prompt_tokens for m in measures]),
        ("vllm:generation_tokens", "Tokens generated.", [m.generation_tokens for m in measures]),
        (
            "vllm:num_preemptions",
            "Times that a sequence had to leave the batch unfinished.",
            [m.preemptions for m in measures],
        ),
        (
            "vllm:prefix_cache_queries",
            "Tokens looked up in the prefix cache.",
            [m.prefix_queried_tokens for m in measures],
        ),
        (
            "vllm:prefix_cache_hits",
            "Tokens found in the prefix cache.",
            [m.prefix_found_tokens for m in measures],
        ),
    ):
        family = CounterMetricFamily(name, documentation, labels=_LABELS)
        for rank, value in enumerate(values):
            family.add_metric(_labels(server, rank), value)
        yield family
    success = CounterMetricFamily(
        "vllm:request_success", "Requests that got all of their tokens.", labels=(*_LABELS, "finished_reason")
    )
    for rank, item in enumerate(measures):
        success.add_metric((*_labels(server, rank), "stop"), item.finished_requests)
    yield success


_HISTOGRAMS: Final = (
    ("vllm:time_to_first_token_seconds", "Time to first token.", "time_to_first_token_seconds"),
    ("vllm:time_per_output_token_seconds", "Time per output token.", "inter_token_seconds"),
    ("vllm:inter_token_latency_seconds", "Time between two tokens.", "inter_token_seconds"),
    (
        "vllm:request_time_per_output_token_seconds",
        "Mean time per token after the first, per request.",
        "request_token_seconds",
    ),
    ("vllm:request_queue_time_seconds", "Time spent in the queue.", "queue_seconds"),
    ("vllm:e2e_request_latency_seconds", "Time of the whole request.", "latency_seconds"),
    ("vllm:request_prompt_tokens", "Prompt tokens per request.", "request_prompt_tokens"),
    ("vllm:request_generation_tokens", "Generated tokens per request.", "request_generation_tokens"),
    (
        "vllm:request_prefill_kv_computed_tokens",
        "Prompt tokens per request that were computed, not found in a cache.",
        "request_prefill_computed_tokens",
    ),
    ("vllm:iteration_tokens_total", "Tokens per iteration of the engine.", "iteration_tokens"),
)
"""Name, documentation, and the field of the measures."""


def _histograms(server: Server) -> Iterator[Metric]:
    for name, documentation, field in _HISTOGRAMS:
        family = HistogramMetricFamily(name, documentation, labels=_LABELS)
        for rank, engine in enumerate(server.ranks):
            histogram: Histogram = getattr(engine.measures, field)
            family.add_metric(_labels(server, rank), histogram.cumulative(), histogram.total)
        yield family
