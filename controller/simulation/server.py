"""One replica: the engines of its data-parallel ranks, most often a single one, and their metrics.

The metrics have vLLM's names. Both names of the time between tokens are served, because releases differ:
`vllm:inter_token_latency_seconds` replaced `vllm:time_per_output_token_seconds`, and for a while vLLM itself
served both.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from controller.simulation.batch import CompletedRequest, Histogram, Sequence
from controller.simulation.engine import SimulatedEngine
from controller.simulation.profile import EngineProfile
from controller.simulation.workload import Request


class Server:
    """Engines by rank. A request goes to the shortest queue, then to the smallest batch.

    Methods are those of an engine, for all ranks together.
    """

    def __init__(self, profile: EngineProfile, *, now_us: int = 0, seed: int = 0) -> None:
        self.profile = profile
        self.ranks = tuple(
            SimulatedEngine(profile, now_us=now_us, seed=seed * profile.ranks + rank)
            for rank in range(profile.ranks)
        )

    @property
    def running(self) -> int:
        """Number of sequences in all batches."""
        return sum([engine.running for engine in self.ranks])

    @property
    def waiting(self) -> int:
        """Number of sequences in all queues, including preempted ones."""
        return sum([engine.waiting for engine in self.ranks])

    @property
    def is_idle(self) -> bool:
        """Whether there is nothing to do."""
        return all(engine.is_idle for engine in self.ranks)

    @property
    def kv_usage(self) -> float:
        """Used share of all KV caches, 0.0 to 1.0."""
        return sum([engine.kv_usage for engine in self.ranks]) / len(self.ranks)

    @property
    def next_change_us(self) -> int | None:
        """Next time at which running or waiting may change without a new request; None if all are idle."""
        changes = [change for engine in self.ranks if (change := engine.next_change_us) is not None]
        return min(changes, default=None)

    def kv_usage_at(self, now_us: int) -> float:
        """Return `kv_usage` at a time up to `next_change_us`, if nothing is submitted; it never decreases."""
        return sum([engine.kv_usage_at(now_us) for engine in self.ranks]) / len(self.ranks)

    def submit(self, request: Request, *, now_us: int, patience_end_us: int | None = None) -> None:
        """Queue a request, as `Engine.submit` does."""
        chosen = min(self.ranks, key=lambda engine: (engine.waiting, engine.running))
        chosen.submit(request, now_us=now_us, patience_end_us=patience_end_us)

    def advance(self, until_us: int) -> list[CompletedRequest]:
        """Compute until `until_us` and return the completions, in order for each rank."""
        return [done for engine in self.ranks for done in engine.advance(until_us)]

    def change(self, until_us: int) -> list[CompletedRequest]:
        """Process events, as `Engine.change` does."""
        return [done for engine in self.ranks for done in engine.change(until_us)]

    def pop_abandoned(self) -> list[Request]:
        """Return the requests whose clients gave up since the last call."""
        return [request for engine in self.ranks for request in engine.pop_abandoned()]

    def drain(self) -> list[Sequence]:
        """Stop at once, and return all unfinished requests."""
        return [unfinished for engine in self.ranks for unfinished in engine.drain()]


_GAUGES: Final = (
    ("vllm:num_requests_running", "Requests in the running batch.", "running"),
    ("vllm:num_requests_waiting", "Requests in the queue.", "waiting"),
    ("vllm:kv_cache_usage_perc", "Taken share of the KV cache, 0 to 1.", "kv_usage"),
)
_COUNTERS: Final = (
    ("vllm:prompt_tokens", "Prompt tokens whose prefill has ended.", "prompt_tokens"),
    ("vllm:generation_tokens", "Tokens generated.", "generation_tokens"),
    ("vllm:num_preemptions", "Times that a sequence had to leave the batch unfinished.", "preemptions"),
    ("vllm:prefix_cache_queries", "Tokens looked up in the prefix cache.", "prefix_queried_tokens"),
    ("vllm:prefix_cache_hits", "Tokens found in the prefix cache.", "prefix_found_tokens"),
)
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
"""Name, documentation, and the attribute: of the engine for gauges, of its measures for the others."""

_LABELS: Final = ("model_name", "engine")

CONTENT_TYPE: Final = CONTENT_TYPE_PLAIN_0_0_4
"""Media type of the result of `exposition`."""


class EngineCollector(Collector):
    """Metric families of the engines of one server, read at the time of the scrape.

    Every series has the label `engine`, the rank, and all but `vllm:cache_config_info` have `model_name`:
    vLLM's own info series does not name the model either.
    """

    def __init__(self, server: Server) -> None:
        self._profile = server.profile
        self._engines = [
            ((server.profile.model_id, str(rank)), engine) for rank, engine in enumerate(server.ranks)
        ]

    def collect(self) -> Iterator[Metric]:
        """Yield all families: gauges, counters, histograms."""
        for name, documentation, attribute in _GAUGES:
            gauge = GaugeMetricFamily(name, documentation, labels=_LABELS)
            for labels, engine in self._engines:
                gauge.add_metric(labels, getattr(engine, attribute))
            yield gauge
        yield self._cache_config()
        for name, documentation, attribute in _COUNTERS:
            counter = CounterMetricFamily(name, documentation, labels=_LABELS)
            for labels, engine in self._engines:
                counter.add_metric(labels, getattr(engine.measures, attribute))
            yield counter
        success = CounterMetricFamily(
            "vllm:request_success",
            "Requests that got all of their tokens.",
            labels=(*_LABELS, "finished_reason"),
        )
        for labels, engine in self._engines:
            success.add_metric((*labels, "stop"), engine.measures.finished_requests)
        yield success
        for name, documentation, attribute in _HISTOGRAMS:
            family = HistogramMetricFamily(name, documentation, labels=_LABELS)
            for labels, engine in self._engines:
                histogram: Histogram = getattr(engine.measures, attribute)
                family.add_metric(labels, histogram.cumulative(), histogram.total)
            yield family

    def _cache_config(self) -> Metric:
        profile, labels = self._profile, ("engine", "block_size", "num_gpu_blocks")
        family = GaugeMetricFamily("vllm:cache_config_info", "Size of the KV cache.", labels=labels)
        for (_, rank), _ in self._engines:
            family.add_metric((rank, str(profile.block_size), str(profile.num_gpu_blocks)), 1)
        return family


def exposition(server: Server) -> bytes:
    """Return the metrics of a server's engines in Prometheus' text format 0.0.4."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(EngineCollector(server))
    return generate_latest(registry)
