"""The metrics of an engine, before they are exposed."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field
from functools import partial

# The bucket bounds are those of vLLM's own histograms, so that queries written for it have the same
# resolution.
TIME_TO_FIRST_TOKEN_SECONDS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
)  # fmt: skip
"""Bucket bounds of the time to first token."""

INTER_TOKEN_SECONDS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
"""Bucket bounds of the time between two tokens, and of its mean over a request."""

REQUEST_SECONDS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
)  # fmt: skip
"""Bucket bounds of request latencies and queueing times."""

REQUEST_TOKENS = (
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000,
)  # fmt: skip
"""Bucket bounds of token counts per request."""

ITERATION_TOKENS = (1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16_384)
"""Bucket bounds of tokens per iteration."""


class Histogram:
    """Counts per bucket, and the sum of all observations."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    @property
    def count(self) -> int:
        """Number of observations."""
        return sum(self.counts)

    def observe(self, value: float, times: int = 1) -> None:
        """Record one value, or the same value several times."""
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times

    def cumulative(self) -> list[tuple[str, float]]:
        """Return (upper bound in Prometheus' notation, cumulative count) of each bucket."""
        running, pairs = 0, []
        for bound, count in zip((*self.bounds, float("inf")), self.counts, strict=True):
            running += count
            pairs.append(("+Inf" if bound == float("inf") else str(float(bound)), float(running)))
        return pairs


@dataclass(slots=True)
class Measures:
    """Counters and histograms of one engine since its start."""

    time_to_first_token_seconds: Histogram = field(
        default_factory=partial(Histogram, TIME_TO_FIRST_TOKEN_SECONDS)
    )
    inter_token_seconds: Histogram = field(default_factory=partial(Histogram, INTER_TOKEN_SECONDS))
    request_token_seconds: Histogram = field(default_factory=partial(Histogram, INTER_TOKEN_SECONDS))
    """Mean time per token after the first, of each finished request; 0 for a single token."""

    queue_seconds: Histogram = field(default_factory=partial(Histogram, REQUEST_SECONDS))
    latency_seconds: Histogram = field(default_factory=partial(Histogram, REQUEST_SECONDS))
    request_prompt_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    request_generation_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    request_prefill_computed_tokens: Histogram = field(default_factory=partial(Histogram, REQUEST_TOKENS))
    iteration_tokens: Histogram = field(default_factory=partial(Histogram, ITERATION_TOKENS))
    prompt_tokens: int = 0
    generation_tokens: int = 0
    finished_requests: int = 0
    preemptions: int = 0
    prefix_queried_tokens: int = 0
    prefix_found_tokens: int = 0
