"""The requests of one model: a trace, played with copies, or arrivals drawn along a curve."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.simulation.request import Request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.simulation.curve import Curve
    from controller.simulation.trace import Trace

_NOISE_STEP_SECONDS = 5.0
_NOISE_SECONDS = 120.0
_Arrival = tuple[int, int, int]
"""Microseconds since the beginning, prompt tokens, output tokens."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Played:
    """A trace of which each request is sent `copies` times, all but the first delayed by up to the jitter.

    Raises ValueError for less than one copy, or a negative jitter.
    """

    trace: Trace
    copies: int = 1
    jitter_seconds: float = 2.0

    def __post_init__(self) -> None:
        if self.copies < 1:
            raise ValueError("copies must be 1 or more")
        if not self.jitter_seconds >= 0:
            raise ValueError("jitter_seconds must be 0 or greater")


@dataclass(frozen=True, kw_only=True, slots=True)
class Drawn:
    """Poisson arrivals along a curve; lengths are those of requests drawn from a trace.

    The rate deviates slowly from the curve: by `noise`, a share of it (one standard deviation), with a
    correlation time of two minutes.
    """

    curve: Curve
    lengths: Trace
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not self.lengths:
            raise ValueError("lengths must hold at least one request")
        if not 0 <= self.noise < 1:
            raise ValueError("noise must be 0 or greater and less than 1")


Workload = Played | Drawn
"""The workload of one model."""


def requests(workload: Workload, *, seconds: float, warm_up_seconds: float, seed: int) -> list[Request]:
    """Return the requests of the first `seconds` in order of arrival; equal seeds give equal requests.

    The first `warm_up_seconds` of the workload are additionally played ahead: the time line starts with them,
    at 0.
    """
    arrivals = _arrivals(workload, seconds, seed)
    warm_us = round(warm_up_seconds * 1e6)
    ahead = [item for item in arrivals if item[0] < warm_us]
    timed = [*ahead, *((at_us + warm_us, prompt, output) for at_us, prompt, output in arrivals)]
    return [
        Request(request_id=number, arrival_us=at_us, prompt_tokens=prompt, output_tokens=output)
        for number, (at_us, prompt, output) in enumerate(timed)
    ]


def _arrivals(workload: Workload, seconds: float, seed: int) -> list[_Arrival]:
    made = _play(workload, seed) if isinstance(workload, Played) else _draw(workload, seconds, seed)
    end_us = round(seconds * 1e6)
    return sorted(item for item in made if item[0] < end_us)


def _play(workload: Played, seed: int) -> Iterator[_Arrival]:
    chance = random.Random(seed)  # noqa: S311 (not used for security)
    for entry in workload.trace:
        for copy in range(workload.copies):
            late_seconds = chance.uniform(0, workload.jitter_seconds) if copy else 0.0
            at_us = entry.offset_ms * 1000 + round(late_seconds * 1e6)
            yield at_us, entry.prompt_tokens, entry.output_tokens


def _draw(workload: Drawn, seconds: float, seed: int) -> Iterator[_Arrival]:
    """Yield arrivals in short steps of constant rate, for which the gaps of a Poisson process are exact."""
    chance = random.Random(seed)  # noqa: S311 (not used for security)
    kept = 1 - _NOISE_STEP_SECONDS / _NOISE_SECONDS
    fresh = (1 - kept * kept) ** 0.5 * workload.noise
    off, begin = chance.gauss(0, workload.noise), 0.0
    while begin < seconds:
        rate = workload.curve.rate(begin) * max(0.0, 1 + off)
        at = begin + chance.expovariate(rate) if rate > 0 else seconds
        while at < begin + _NOISE_STEP_SECONDS:
            entry = workload.lengths[chance.randrange(len(workload.lengths))]
            yield round(at * 1e6), entry.prompt_tokens, entry.output_tokens
            at += chance.expovariate(rate)
        off, begin = kept * off + chance.gauss(0, fresh), begin + _NOISE_STEP_SECONDS
