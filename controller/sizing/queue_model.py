"""What a declared profile promises: a queue in front of one server whose speed depends on its batch.

A birth-death chain over the requests in the system: with n in service one request takes
`prefill(n) + (output - 1) * decode(n)`, with `prefill(n) = gamma + delta * prompt * n` and
`decode(n) = alpha + beta * n`. Up to `batch` are served at a time, ten times as many wait, more are lost.
Latencies are those of the mean number in service. Source: the queue analyzer of the llm-d workload variant
autoscaler, up to its release 0.4, whose `variantProfile` this reads. Times in ms, rates per ms inside.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from controller.sizing.records import Profile, Targets

QUEUE_TO_BATCH: Final = 10
"""Requests that may wait, for each that is served at a time."""

_LEAST_SHARE: Final = 0.001
_MOST_SHARE: Final = 0.999
_ITERATIONS: Final = 100
_LEAST_MS: Final = 1e-3
"""No request takes less, whatever a profile says."""

_TOLERANCE: Final = 1e-6


@dataclass(frozen=True, kw_only=True, slots=True)
class Operation:
    """The steady state at a rate of arrivals. Times in ms, rates per second."""

    throughput: float
    response_ms: float
    wait_ms: float
    in_service: float
    """Mean requests that are served at a time."""

    itl_ms: float
    ttft_ms: float
    utilization: float
    """Share of the batch that is used."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Sized:
    """The highest rate of arrivals at which targets are met."""

    rate: float
    """Requests per second; 0 where a target cannot be met at any rate."""

    operation: Operation
    """At that rate, or at the lowest one where a target cannot be met."""

    unreachable: tuple[str, ...] = ()
    """Of TTFT and ITL, what cannot be met at any rate."""


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
        served = np.arange(1, self._batch + 1, dtype=np.float64)
        times = self._prefill(served) + self._steps * self._decode(served)
        rates = served / np.maximum(times, _LEAST_MS)
        places = self._batch + (self._batch * QUEUE_TO_BATCH if queue is None else queue)
        # ln(1 / (mu(1) ... mu(n))) for n = 1 .. K: beyond the batch the last rate goes on.
        whole = np.concatenate([rates, np.full(places - self._batch, rates[-1])])
        self._log_weights = np.concatenate([[0.0], -np.cumsum(np.log(whole))])
        self._numbers = np.arange(places + 1, dtype=np.float64)
        self._served = np.minimum(self._numbers, self._batch)
        self.least = float(rates[0]) * _LEAST_SHARE * 1e3
        """Lowest rate that is looked at, in requests per second."""

        self.most = float(rates[-1]) * _MOST_SHARE * 1e3
        """Highest rate at which the queue is stable, in requests per second."""

    def operate(self, rate: float) -> Operation:
        """Return the steady state at a rate. Raises ValueError for one that is not within 0..`most`."""
        if not 0 < rate <= self.most * (1 + _TOLERANCE):
            raise ValueError(f"the rate must be greater than 0 and at most {self.most}, was {rate}")
        arrivals = rate / 1e3
        logs = self._log_weights + self._numbers * np.log(arrivals)
        shares = np.exp(logs - logs.max())
        shares /= shares.sum()
        throughput = arrivals * (1.0 - float(shares[-1]))
        number = float(self._numbers @ shares)
        in_service = float(self._served @ shares)
        response, service = number / throughput, in_service / throughput
        wait = max(0.0, response - service)
        batch = self._effective_batch(service)
        return Operation(
            throughput=throughput * 1e3,
            response_ms=response,
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
        """Return the batch at which one request takes as long as the mean one does."""
        parameters = self._parameters
        fixed = parameters.gamma_ms + parameters.alpha_ms * (self._output - 1)
        growing = parameters.delta_ms * self._prompt + parameters.beta_ms * (self._output - 1)
        return min(max((service_ms - fixed) / growing, 0.0), float(self._batch)) if growing > 0 else 0.0


@lru_cache(maxsize=4096)
def within(profile: Profile, targets: Targets, prompt_tokens: float, output_tokens: float) -> Sized:
    """Return the highest rate at which a replica with this profile meets all targets."""
    model = QueueModel(profile, prompt_tokens=prompt_tokens, output_tokens=output_tokens)
    rate, unreachable = model.most, []
    looks: tuple[tuple[str, float | None, Callable[[Operation], float]], ...] = (
        ("TTFT", targets.ttft_seconds, lambda at: at.ttft_ms),
        ("ITL", targets.itl_seconds, lambda at: at.itl_ms),
    )
    for name, target, latency in looks:
        if target is None:
            continue
        found = _highest(model, lambda at, read=latency: read(at), target * 1e3)  # type: ignore[misc]
        if found is None:
            unreachable.append(name)
        else:
            rate = min(rate, found)
    if unreachable:
        return Sized(rate=0.0, operation=model.operate(model.least), unreachable=tuple(unreachable))
    operation = model.operate(rate)
    return Sized(rate=operation.throughput, operation=operation)


def _highest(model: QueueModel, latency: Callable[[Operation], float], target: float) -> float | None:
    """Return by bisection the highest rate at which a latency that grows with it meets its target."""
    low, high = model.least, model.most
    if latency(model.operate(low)) > target:
        return None
    if latency(model.operate(high)) <= target:
        return high
    for _ in range(_ITERATIONS):
        middle = (low + high) / 2
        value = latency(model.operate(middle))
        if abs(value - target) <= _TOLERANCE * target:
            return middle
        low, high = (middle, high) if value < target else (low, middle)
    return low
