"""Compute the request rate that one replica serves within its targets.

From `1 = alpha / tau + w * rate` with `w = beta * output + delta * prompt`, the work of one request:

- ITL: the mean step may take a share of the target, because single requests see more than the mean;
- batch: with n concurrent sequences, each request takes `output * alpha + n * w`;
- TTFT: the mean wait for the prompts of others (M/G/1) may take a share of what the request's own prefill
  leaves.

The smallest rate applies. A target that cannot be met at any load is reported with the best achievable value
and otherwise ignored: the replica serves in any case.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from controller.planning.load import MOST_RATE, Capacity, CapacitySource, RateLimit, Target
from controller.sizing.lengths import Lengths
from controller.sizing.queue_model import Sized, within
from controller.sizing.records import Profile, SizingSettings, StepParameters, Targets

_MOST_MODELLED: Final = 4096
"""The largest batch that the queue model considers, because its effort grows with the batch."""

_LEAST_SECONDS: Final = 1e-12
"""The minimum work of a request, and of its first step: counters of engines may lead to none."""

_STEP_OF_LENGTHS: Final = 0.05
"""Relative step to which lengths are rounded, so that results of the queue model can be cached."""


def learned_capacity(
    parameters: StepParameters,
    lengths: Lengths,
    targets: Targets,
    *,
    batch: float,
    source: CapacitySource,
    settings: SizingSettings,
) -> Capacity:
    """Return the capacity of a replica with these step times; `batch` is its maximum of sequences."""
    limits = [*_limits(parameters, lengths, targets, batch=batch, settings=settings)]
    met = sorted(
        [RateLimit(target=of, text=text, requests_per_second=rate) for of, text, rate in limits if rate > 0],
        key=_rate,
    )
    unmet = [of for of, _, rate in limits if rate <= 0]
    return Capacity(
        requests_per_second=min(MOST_RATE, met[0].requests_per_second),
        source=source,
        limits=tuple(met),
        unreachable=tuple([_best(of, parameters, lengths, targets, settings) for of in unmet]),
    )


def batch_of(lengths: Lengths, *, max_num_seqs: int, kv_tokens: float | None) -> float:
    """Return the concurrent sequences of a replica: its limit, or what fits in its KV cache if less."""
    if kv_tokens is None:
        return float(max_num_seqs)
    return max(1.0, min(float(max_num_seqs), kv_tokens / (lengths.prompt + lengths.output / 2)))


def _limits(
    parameters: StepParameters,
    lengths: Lengths,
    targets: Targets,
    *,
    batch: float,
    settings: SizingSettings,
) -> Iterator[tuple[Target, str, float]]:
    """Yield the rate that each limit allows, in requests per second; 0 or less if it cannot be met."""
    alpha = parameters.alpha_ms / 1e3
    prefill = (parameters.gamma_ms + parameters.delta_ms * lengths.computed) / 1e3
    work = max(_LEAST_SECONDS, parameters.beta_ms / 1e3 * lengths.output + prefill)
    sequences = settings.target_utilization * batch
    rate = sequences / (lengths.output * alpha + sequences * work)
    yield Target.BATCH, f"a batch of {batch:.0f}", rate
    if targets.itl_seconds is not None:
        rate = (1 - alpha / (settings.itl_share * targets.itl_seconds)) / work
        yield Target.ITL, _itl(targets.itl_seconds), rate
    if targets.ttft_seconds is not None:
        single = max(_LEAST_SECONDS, prefill + alpha)
        busy = settings.wait_share * (targets.ttft_seconds - single) / (single * lengths.inequality / 2)
        rate = busy / ((1 + busy) * work) if busy > 0 else 0.0
        yield Target.TTFT, _ttft(targets.ttft_seconds), rate


def declared_capacity(
    profile: Profile, lengths: Lengths, targets: Targets, *, batch: float, correction: float
) -> Capacity:
    """Return the capacity that a declared profile promises, times a correction from observations."""
    most = min(profile.max_batch_size, int(batch), _MOST_MODELLED)
    narrowed = replace(profile, max_batch_size=max(1, most))
    prompt, output = _rounded(lengths.computed), _rounded(lengths.output)
    found = within(narrowed, targets, prompt, output)
    limits = [*_promises(found, narrowed.max_batch_size, targets)]
    return Capacity(
        requests_per_second=min(MOST_RATE, found.rate * correction),
        source=CapacitySource.PROFILE,
        limits=tuple(
            sorted(
                [
                    RateLimit(target=target, text=text, requests_per_second=rate * correction)
                    for target, text, rate in limits
                    if rate
                ],
                key=_rate,
            )
        ),
        unreachable=tuple([_promised(target, found, targets) for target, _, rate in limits if not rate]),
    )


def _promises(found: Sized, batch: int, targets: Targets) -> Iterator[tuple[Target, str, float]]:
    """Yield the rate that each target alone allows, in requests per second; 0 if it cannot be met."""
    yield Target.BATCH, f"a batch of {batch}", found.full
    if targets.ttft_seconds is not None and found.ttft is not None:
        yield Target.TTFT, _ttft(targets.ttft_seconds), found.ttft
    if targets.itl_seconds is not None and found.itl is not None:
        yield Target.ITL, _itl(targets.itl_seconds), found.itl


def _best(
    target: Target,
    parameters: StepParameters,
    lengths: Lengths,
    targets: Targets,
    settings: SizingSettings,
) -> str:
    if target is Target.ITL:
        best = parameters.alpha_ms / settings.itl_share
        return _cannot(_itl(targets.itl_seconds or 0.0), best / 1e3)
    single = parameters.gamma_ms + parameters.delta_ms * lengths.computed + parameters.alpha_ms
    return _cannot(_ttft(targets.ttft_seconds or 0.0), single / 1e3)


def _promised(target: Target, found: Sized, targets: Targets) -> str:
    if target is Target.ITL:
        return _cannot(_itl(targets.itl_seconds or 0.0), found.idle.itl_ms / 1e3)
    return _cannot(_ttft(targets.ttft_seconds or 0.0), found.idle.ttft_ms / 1e3)


def _cannot(target: str, best_seconds: float) -> str:
    return f"{target} cannot be met: the best that an idle replica reaches is {duration(best_seconds)}"


def _ttft(seconds: float) -> str:
    return f"TTFT {duration(seconds)}"


def _itl(seconds: float) -> str:
    return f"ITL {duration(seconds)}"


def duration(seconds: float) -> str:
    """Return a short duration in words: `2 s`, `80 ms`, `0.4 ms`."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def _rounded(tokens: float) -> float:
    return math.exp(round(math.log(max(1.0, tokens)) / _STEP_OF_LENGTHS) * _STEP_OF_LENGTHS)


def _rate(limit: RateLimit) -> float:
    return limit.requests_per_second
