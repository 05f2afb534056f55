"""An engine's metrics in Prometheus' text format, under vLLM's names.

Both names of the time between tokens are served, because releases differ: `vllm:inter_token_latency_seconds`
replaced `vllm:time_per_output_token_seconds`, and for a while vLLM itself served both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.registry import Collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client.metrics_core import Metric

    from controller.simulation.engine import Engine
    from controller.simulation.measures import Histogram, Measures

CONTENT_TYPE = CONTENT_TYPE_PLAIN_0_0_4
"""Media type of the result of `exposition`."""

_LABELS = ("model_name", "engine")


class EngineCollector(Collector):
    """Metric families of one engine, read at the time of the scrape.

    Every series has the label `engine` (always "0": one engine core per pod), and all but
    `vllm:cache_config_info` have `model_name`: vLLM's own info series does not name the model either.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def collect(self) -> Iterator[Metric]:
        """Yield all families: gauges, counters, histograms."""
        labels = (self._engine.profile.model_id, "0")
        yield from _gauges(self._engine, labels=labels)
        yield _cache_config(self._engine)
        yield from _counters(self._engine.measures, labels=labels)
        yield from _histograms(self._engine.measures, labels=labels)


def exposition(engine: Engine) -> bytes:
    """Return the engine's metrics in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(engine))
    return generate_latest(registry)


def _gauges(engine: Engine, *, labels: tuple[str, str]) -> Iterator[Metric]:
    for name, documentation, value in (
        ("vllm:num_requests_running", "Requests in the running batch.", engine.running),
        ("vllm:num_requests_waiting", "Requests in the queue.", engine.waiting),
        ("vllm:kv_cache_usage_perc", "Taken share of the KV cache, 0 to 1.", engine.kv_usage),
    ):
        family = GaugeMetricFamily(name, documentation, labels=_LABELS)
        family.add_metric(labels, value)
        yield family


def _cache_config(engine: Engine) -> Metric:
    profile = engine.profile
    family = GaugeMetricFamily(
        "vllm:cache_config_info", "Size of the KV cache.", labels=("engine", "block_size", "num_gpu_blocks")
    )
    family.add_metric(("0", str(profile.block_size), str(profile.num_gpu_blocks)), 1)
    return family


def _counters(measures: Measures, *, labels: tuple[str, str]) -> Iterator[Metric]:
    for name, documentation, value in (
        ("vllm:prompt_tokens", "Prompt tokens whose prefill has ended.", measures.prompt_tokens),
        ("vllm:generation_tokens", "Tokens generated.", measures.generation_tokens),
        (
            "vllm:num_preemptions",
            "Times that a sequence had to leave the batch unfinished.",
            measures.preemptions,
        ),
        (
            "vllm:prefix_cache_queries",
            "Tokens looked up in the prefix cache.",
            measures.prefix_queried_tokens,
        ),
        # A trace has the lengths of prompts, not their text: it is unknown whether any share a prefix.
        ("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", 0),
    ):
        family = CounterMetricFamily(name, documentation, labels=_LABELS)
        family.add_metric(labels, value)
        yield family
    success = CounterMetricFamily(
        "vllm:request_success", "Requests that got all of their tokens.", labels=(*_LABELS, "finished_reason")
    )
    success.add_metric((*labels, "stop"), measures.finished_requests)
    yield success


def _histograms(measures: Measures, *, labels: tuple[str, str]) -> Iterator[Metric]:
    for name, documentation, histogram in (
        ("vllm:time_to_first_token_seconds", "Time to first token.", measures.time_to_first_token_seconds),
        ("vllm:time_per_output_token_seconds", "Time per output token.", measures.inter_token_seconds),
        ("vllm:inter_token_latency_seconds", "Time between two tokens.", measures.inter_token_seconds),
        ("vllm:request_queue_time_seconds", "Time spent in the queue.", measures.queue_seconds),
        ("vllm:e2e_request_latency_seconds", "Time of the whole request.", measures.latency_seconds),
        ("vllm:request_prompt_tokens", "Prompt tokens per request.", measures.request_prompt_tokens),
        (
            "vllm:request_generation_tokens",
            "Generated tokens per request.",
            measures.request_generation_tokens,
        ),
        (
            "vllm:request_prefill_kv_computed_tokens",
            "Prompt tokens per request that were computed, not found in a cache.",
            measures.request_prefill_computed_tokens,
        ),
        ("vllm:iteration_tokens_total", "Tokens per iteration of the engine.", measures.iteration_tokens),
    ):
        yield _histogram(name, documentation, histogram=histogram, labels=labels)


def _histogram(name: str, documentation: str, *, histogram: Histogram, labels: tuple[str, str]) -> Metric:
    family = HistogramMetricFamily(name, documentation, labels=_LABELS)
    family.add_metric(labels, histogram.cumulative(), histogram.total)
    return family
