"""The queue model of a declared profile: a queue in front of one server whose speed depends on its batch.

A birth-death chain over the requests in the system: with n in service, one request takes `prefill(n) +
(output - 1) * decode(n)`, with `prefill(n) = gamma + delta * prompt * n` and `decode(n) = alpha + beta * n`.
Up to `batch` requests are in service, ten times as many can wait, more are lost. Latencies are those at the
mean number in service. Source: the queue analyzer of the llm-d workload variant autoscaler, up to its release
0.4, whose `variantProfile` this reads. Internally, times are in ms and rates per ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from controller.sizing.records import Profile, Targets

QUEUE_TO_BATCH: Final = 10
"""Maximum waiting requests per request in service."""

_LEAST_SHARE: Final = 0.001
_MOST_SHARE: Final = 0.999
_ITERATIONS: Final = 100
_LEAST_MS: Final = 1e-3
"""Minimum service time of a request, whatever a profile says."""

_TOLERANCE: Final = 1e-6
_REMEMBERED: Final = 32_768
"""Number of cached results: enough for more variants than are planned for, as long as their inputs are
unchanged.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """The steady state at an arrival rate. Times in ms, rates per second."""

    throughput: float
    response_ms: float
    wait_ms: float
    in_service: float
    """Mean number of requests in service."""

    itl_ms: float
    ttft_ms: float
    utilization: float
    """Utilization of the batch, from 0 to 1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """The highest rates that a replica serves, in requests per second."""

    full: float
    """At any latency: the rate of a full batch, less a thousandth."""

    ttft: float | None
    """Within the TTFT target; None without a target, 0 if it cannot be met at any rate."""

    itl: float | None
    """Within the ITL target; None without a target, 0 if it cannot be met at any rate."""

    idle: Operation
    """The state at the lowest considered rate, which has the best latencies."""

    @property
    def rate(self) -> float:
        """The highest rate within all targets that can be met."""
        return min([self.full, *(rate for rate in (self.ttft, self.itl) if rate)])


class QueueModel:
    """One replica with a profile, for requests of one length."""

    def __init__(
        self, profile: Profile, *, prompt_tokens: float, output_tokens: float, queue: int | None = None
    ) -> None:
        self._parameters = profile.parameters
        self._prompt, self._output = prompt_tokens, output_tokens
        self._batch = profile.max_batch_size
        single = prompt_tokens == 0 and output_tokens == 1
        self._steps = 1.0 if single else output_tokens - 1
        self._served = np.arange(self._batch + 1, dtype=np.float64)
        times = self._prefill(self._served[1:]) + self._steps * self._decode(self._served[1:])
        rates = self._served[1:] / np.maximum(times, _LEAST_MS)
        self._queue = self._batch * QUEUE_TO_BATCH if queue is None else queue
        self._fastest = float(rates[-1])
        # ln(1 / (mu(1) ... mu(n))) for n = 0 .. batch; beyond that the service rate is constant.
        self._log_weights = np.concatenate([[0.0], -np.cumsum(np.log(rates))])
        self.least = float(rates[0]) * _LEAST_SHARE * 1e3
        """The lowest considered rate, in requests per second."""

        self.most = float(rates[-1]) * _MOST_SHARE * 1e3
        """The highest rate at which the queue is stable, in requests per second."""

    def operate(self, rate: float) -> Operation:
        """Return the steady state at a rate. Raises ValueError unless it is above 0 and at most `most`."""
        if not 0 < rate <= self.most * (1 + _TOLERANCE):
            raise ValueError(f"the rate must be greater than 0 and at most {self.most}, was {rate}")
        arrivals = rate / 1e3
        logs = self._log_weights + self._served * math.log(arrivals)
        shares = np.exp(logs - logs.max())
        last, ratio = float(shares[-1]), arrivals / self._fastest
        # With a queue, each state is `ratio` times as likely as the one before: a geometric series.
        end = ratio**self._queue
        queued = last * ratio * (1 - end) / (1 - ratio)
        waiting = last * ratio * (1 - (self._queue + 1) * end + self._queue * end * ratio) / (1 - ratio) ** 2
        whole = float(shares.sum()) + queued
        throughput = arrivals * (1 - last * end / whole)
        in_service = (float(self._served @ shares) + self._batch * queued) / whole
        wait, service = waiting / whole / throughput, in_service / throughput
        batch = self._effective_batch(service)
        return Operation(
            throughput=throughput * 1e3,
            response_ms=wait + service,
            wait_ms=wait,
            in_service=in_service,
            itl_ms=float(self._decode(np.float64(batch))),
            ttft_ms=wait + float(self._prefill(np.float64(batch))),
            utilization=min(1.0, in_service / self._batch),
        )

    def _prefill(self, served: np.ndarray | np.float64) -> np.ndarray | np.float64:
        if not self._prompt:
            return served * 0.0
        return self._parameters.gamma_ms + self._parameters.delta_ms * self._prompt * served

    def _decode(self, served: np.ndarray | np.float64) -> np.ndarray | np.float64:
        return self._parameters.alpha_ms + self._parameters.beta_ms * served

    def _effective_batch(self, service_ms: float) -> float:
        """Return the batch at which the service time of a request equals the mean."""
        parameters = self._parameters
        fixed = parameters.gamma_ms + parameters.alpha_ms * (self._output - 1)
        growing = parameters.delta_ms * self._prompt + parameters.beta_ms * (self._output - 1)
        return min(max((service_ms - fixed) / growing, 0.0), float(self._batch)) if growing > 0 else 0.0


@lru_cache(maxsize=_REMEMBERED)
def within(profile: Profile, targets: Targets, prompt_tokens: float, output_tokens: float) -> Sized:
    """Return the highest rates at which a replica with this profile meets its targets."""
    model = QueueModel(profile, prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    idle, full = model.operate(model.least), model.operate(model.most)

    def highest(latency: Callable[[Operation], float], target_seconds: float | None) -> float | None:
        if target_seconds is None:
            return None
        if latency(idle) > target_seconds * 1e3:
            return 0.0
        if latency(full) <= target_seconds * 1e3:
            return full.throughput
        return _highest(model, latency, target_seconds * 1e3)

    return Sized(
        full=full.throughput,
        ttft=highest(lambda at: at.ttft_ms, targets.ttft_seconds),
        itl=highest(lambda at: at.itl_ms, targets.itl_seconds),
        idle=idle,
    )


def _highest(model: QueueModel, latency: Callable[[Operation], float], target: float) -> float:
    """Return the throughput at which a latency reaches its target, by bisection."""
    low, high = model.least, model.most
    for _ in range(_ITERATIONS):
        middle = (low + high) / 2
        at = model.operate(middle)
        if abs(latency(at) - target) <= _TOLERANCE * target:
            return at.throughput
        low, high = (middle, high) if latency(at) < target else (low, middle)
    return model.operate(low).throughput
