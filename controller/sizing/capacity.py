"""Compute the request rate that one replica serves while it keeps the promised share within the targets.

From `1 = alpha / tau + work * rate` with `work = beta * output + gamma + delta * prompt`, the time that one
request takes of an engine, follow the mean time of a step and the mean wait for other prompts (M/G/1) at a
rate. Each target leaves something to these means: what remains of it for a request that is alone. The
assumption is how much of that they may take, so that the promised share of requests is within the target;
what engines attained corrects it (`attainment.py`).

A target that not even a request alone meets is reported with the time that it takes, and otherwise ignored:
the replica serves in any case.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from controller.planning.load import MOST_RATE, Capacity, CapacitySource, LimitingTarget, ReplicaRateLimit
from controller.planning.wording import percent
from controller.sizing.attainment import Experience, above, shares
from controller.sizing.lengths import Lengths
from controller.sizing.records import StepParameters, Targets

BATCH_SHARE: Final = 0.85
"""Utilization that is assumed without a tighter target; at the full rate, queues would only grow."""

_MOST_SHARE: Final = 0.75
"""Share of what a target leaves that a mean may take, whatever was attained: beyond, few requests meet it."""

_LEAST_OF_ASSUMED: Final = 0.25
"""Least utilization relative to the assumed one: some requests miss at any utilization, such as those with
very long prompts.
"""

_LEAST_SECONDS: Final = 1e-12
"""The minimum work of a request, and of its first step: counters of engines may lead to none."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedCapacity:
    """A capacity, and what to remember of it."""

    capacity: Capacity
    full_rate: float
    """Requests per second that a replica serves at any latency."""

    utilization: float
    """Share of it that is planned for."""

    assumed_utilization: float
    """Share of it that would be without measurements; more could miss targets even at a steady rate."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Limit:
    """What one target allows. Rates are requests per second of one engine."""

    target: LimitingTarget
    text: str
    assumed_rate: float = 0.0
    most_rate: float = 0.0
    alone_seconds: float | None = None
    """Time that a request alone takes, if that is above the target."""


def batch_of(lengths: Lengths, *, max_num_seqs: int, kv_tokens: float | None) -> float:
    """Return the concurrent sequences of a replica: its limit, or what fits in its KV cache if less."""
    if kv_tokens is None:
        return float(max_num_seqs)
    return max(1.0, min(float(max_num_seqs), kv_tokens / (lengths.prompt + lengths.output / 2)))


def sized_capacity(
    parameters: StepParameters,
    lengths: Lengths,
    targets: Targets,
    experience: Experience,
    *,
    batch: float,
    engines: int,
    source: CapacitySource,
) -> SizedCapacity:
    """Return the capacity of a replica of some engines, each with up to `batch` sequences at once."""
    work = _work(parameters, lengths)
    # By Little's law, a full batch is `rate * output * tau`. With this tau, `1 = alpha / tau + work * rate`
    # gives the rate.
    full = batch / (lengths.output * parameters.alpha_ms / 1e3 + batch * work)
    limits = [
        _Limit(
            target=LimitingTarget.BATCH,
            text=f"a batch of {batch:.0f}",
            assumed_rate=BATCH_SHARE * full,
            most_rate=BATCH_SHARE * full,
        ),
        *_limits(parameters, lengths, targets, work),
    ]
    met = sorted([item for item in limits if item.alone_seconds is None], key=lambda item: item.assumed_rate)
    assumed = met[0].assumed_rate / full
    hopeless = _hopeless(parameters, lengths, targets)
    allowed = 1 - targets.attainment
    # Hopeless requests use up a part of what the promise allows. If they alone are more than that, all of it
    # applies to the others.
    learned = experience.utilization(
        assumed, allowed if hopeless > allowed else allowed - hopeless, unavoidable=hopeless
    )
    utilization = min(max(learned, _LEAST_OF_ASSUMED * assumed), min(item.most_rate for item in met) / full)
    rate = min(MOST_RATE, utilization * full * engines)
    return SizedCapacity(
        capacity=Capacity(
            requests_per_second=rate,
            source=source,
            limits=tuple(
                [
                    ReplicaRateLimit(
                        target=item.target,
                        text=item.text,
                        # The first limit explains the rate. What engines attained can raise the rate above
                        # what others assume, and no limit may be shown below it.
                        requests_per_second=max(rate, min(MOST_RATE, item.assumed_rate * engines)),
                    )
                    if position
                    else ReplicaRateLimit(target=item.target, text=item.text, requests_per_second=rate)
                    for position, item in enumerate(_tightest_first(met, experience, targets))
                ]
            ),
            unreachable=tuple(_unreachable(limits, targets, hopeless)),
        ),
        full_rate=full * engines,
        utilization=utilization,
        assumed_utilization=assumed,
    )


def _unreachable(limits: list[_Limit], targets: Targets, hopeless: float) -> Iterator[str]:
    """Yield the targets that cannot be met, each with what can be."""
    for item in limits:
        if item.alone_seconds is not None:
            what = "a step of an idle engine" if item.target is LimitingTarget.ITL else "a request alone"
            yield f"{item.text} cannot be met: {what} takes {duration(item.alone_seconds)}"
        elif item.target is LimitingTarget.TTFT and hopeless > 1 - targets.attainment:
            yield (
                f"{item.text} can be met for at most {percent(1 - hopeless)} of the requests, of the"
                f" promised {percent(targets.attainment)}: the prompts of the others alone take longer"
            )


def _hopeless(parameters: StepParameters, lengths: Lengths, targets: Targets) -> float:
    """Return the share of requests whose own prompt takes longer than the TTFT target."""
    if targets.ttft_seconds is None or not parameters.delta_ms:
        return 0.0
    left_ms = targets.ttft_seconds * 1e3 - parameters.alpha_ms - parameters.gamma_ms
    # A histogram has whole prompts, of which on average this share is computed.
    per_token_ms = parameters.delta_ms * lengths.computed / lengths.prompt
    slow, requests = above(lengths.prompts, max(0.0, left_ms / per_token_ms))
    return slow / requests if requests else 0.0


def _work(parameters: StepParameters, lengths: Lengths) -> float:
    """Return the time that one request takes of an engine, in seconds."""
    return max(_LEAST_SECONDS, parameters.beta_ms / 1e3 * lengths.output + _prefill(parameters, lengths))


def _prefill(parameters: StepParameters, lengths: Lengths) -> float:
    return (parameters.gamma_ms + parameters.delta_ms * lengths.computed) / 1e3


def _limits(parameters: StepParameters, lengths: Lengths, targets: Targets, work: float) -> list[_Limit]:
    alpha, share = parameters.alpha_ms / 1e3, shares(targets.attainment)
    limits = []
    if targets.itl_seconds is not None and lengths.output > 1:
        text, left = f"ITL {duration(targets.itl_seconds)}", targets.itl_seconds - alpha

        def within_itl(share: float) -> float:
            # The rate at which the mean step is `tau = alpha + share * left`, by the equation above.
            return (1 - alpha / (alpha + share * left)) / work

        idle = alpha + parameters.beta_ms / 1e3
        limits.append(_limit(LimitingTarget.ITL, text, (left, idle), within_itl, share))
    if targets.ttft_seconds is not None:
        alone = max(_LEAST_SECONDS, _prefill(parameters, lengths) + alpha)
        text, left = f"TTFT {duration(targets.ttft_seconds)}", targets.ttft_seconds - alone

        def within_ttft(share: float) -> float:
            # Pollaczek and Khinchine: with a utilization rho, the mean wait is `rho / (1 - rho)` times half
            # of the mean time of a request alone, times E[x^2] / E[x]^2. `busy` is the first factor at which
            # this wait is the share, and `rho = work * rate`.
            busy = share * left / (alone * lengths.inequality / 2)
            return busy / ((1 + busy) * work)

        limits.append(_limit(LimitingTarget.TTFT, text, (left, alone), within_ttft, share))
    return limits


def _limit(
    target: LimitingTarget,
    text: str,
    seconds: tuple[float, float],
    rate: Callable[[float], float],
    share: float,
) -> _Limit:
    """Return a limit from the rate at which a mean takes a share of what the target leaves.

    `seconds` are what the target leaves, and the time that a request alone takes.
    """
    left_seconds, alone_seconds = seconds
    if left_seconds <= 0:
        return _Limit(target=target, text=text, alone_seconds=alone_seconds)
    return _Limit(target=target, text=text, assumed_rate=rate(share), most_rate=rate(_MOST_SHARE))


def _tightest_first(met: list[_Limit], experience: Experience, targets: Targets) -> list[_Limit]:
    """Return the limits, first that which most requests missed, or the lowest of the assumed ones."""
    missed = {
        LimitingTarget.TTFT: experience.attained.missed_ttft,
        LimitingTarget.ITL: experience.attained.missed_itl,
    }
    least = (1 - targets.attainment) * experience.attained.requests / 2
    worst = max(met, key=lambda item: missed.get(item.target, 0.0))
    if missed.get(worst.target, 0.0) > least:
        return [worst, *[item for item in met if item is not worst]]
    return met


def duration(seconds: float) -> str:
    """Return a short duration in words: `2 s`, `80 ms`, `0.4 ms`."""
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"
