"""The requests of a model: a trace, played with copies, or arrivals drawn along a curve."""

from __future__ import annotations

import csv
import gzip
import math
import random
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from io import StringIO
from itertools import accumulate
from typing import Literal

_NOISE_STEP_SECONDS = 5.0
_NOISE_SECONDS = 120.0
_TRACES = files("controller.simulation") / "traces"

Shape = Literal["constant", "step", "spike", "ramp", "sine"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One request of a client, with its prompt and output tokens.

    `arrival_us` is when the client sent it; it is unchanged when the request is retried on another engine.
    """

    request_id: int
    arrival_us: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceEntry:
    """One recorded request, without its text; the offset is relative to the start of the trace."""

    offset_ms: int
    prompt_tokens: int
    output_tokens: int


Trace = tuple[TraceEntry, ...]
"""Recorded requests, sorted by offset."""


@cache
def included_traces() -> tuple[str, ...]:
    """Return the names of the traces in the package."""
    names = (file.name for file in _TRACES.iterdir())
    return tuple(sorted(name.removesuffix(".csv.gz") for name in names if name.endswith(".csv.gz")))


@cache
def load_trace(name: str) -> Trace:
    """Return one of the included traces. Raises FileNotFoundError."""
    return decode((_TRACES / f"{name}.csv.gz").read_bytes())


def decode(content: bytes) -> Trace:
    """Return the trace in gzipped CSV with the gaps between requests in ms, their prompts and outputs."""
    _, *lines = csv.reader(StringIO(gzip.decompress(content).decode()))
    rows = [(int(gap_ms), int(prompt), int(output)) for gap_ms, prompt, output in lines]
    offsets_ms = accumulate(gap_ms for gap_ms, _, _ in rows)
    return tuple(
        TraceEntry(offset_ms=offset_ms, prompt_tokens=prompt, output_tokens=output)
        for offset_ms, (_, prompt, output) in zip(offsets_ms, rows, strict=True)
    )


def piece(trace: Iterable[TraceEntry], *, from_seconds: float, to_seconds: float) -> Trace:
    """Return the entries with an offset in [from, to), relative to the start of the piece."""
    from_ms, to_ms = round(from_seconds * 1000), round(to_seconds * 1000)
    return tuple(
        TraceEntry(
            offset_ms=entry.offset_ms - from_ms,
            prompt_tokens=entry.prompt_tokens,
            output_tokens=entry.output_tokens,
        )
        for entry in trace
        if from_ms <= entry.offset_ms < to_ms
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class Curve:
    """Expected requests per second over time, between `low` and `high`, which are numbers from 0 on.

    - constant: always `high`.
    - step: `low`, and from `at_seconds` on `high`.
    - spike: `high` for `length_seconds` from `at_seconds` on, repeated every `period_seconds` if given; `low`
      otherwise.
    - ramp: linear from `low` to `high`, starting at `at_seconds` and lasting `length_seconds`.
    - sine: between both with a period of `period_seconds`, starting at `low`; a day is 86400.

    Raises ValueError if the shape requires a length or a period that is missing.
    """

    shape: Shape
    high: float
    low: float = 0.0
    at_seconds: float = 0.0
    length_seconds: float = 0.0
    period_seconds: float = 0.0

    def __post_init__(self) -> None:
        if self.shape == "sine" and not self.period_seconds > 0:
            raise ValueError("period_seconds must be greater than 0 for a sine")
        if self.shape in ("spike", "ramp") and not self.length_seconds > 0:
            raise ValueError(f"length_seconds must be greater than 0 for a {self.shape}")

    def rate(self, seconds: float) -> float:
        """Return the requests per second at a time."""
        return self.low + self._share(seconds - self.at_seconds) * (self.high - self.low)

    def _share(self, since_seconds: float) -> float:
        match self.shape:
            case "constant":
                return 1.0
            case "step":
                return float(since_seconds >= 0)
            case "spike":
                is_repeated = self.period_seconds > 0 and since_seconds >= 0
                within_seconds = since_seconds % self.period_seconds if is_repeated else since_seconds
                return float(0 <= within_seconds < self.length_seconds)
            case "ramp":
                return min(1.0, max(0.0, since_seconds / self.length_seconds))
            case "sine":
                return (1 - math.cos(2 * math.pi * since_seconds / self.period_seconds)) / 2


@dataclass(frozen=True, kw_only=True, slots=True)
class TraceReplay:
    """A trace of which each request is sent `copies` times, all but the first delayed by up to the jitter."""

    trace: Trace
    copies: int = 1
    jitter_seconds: float = 2.0


@dataclass(frozen=True, kw_only=True, slots=True)
class DrawnArrivals:
    """Poisson arrivals along a curve; lengths are those of requests drawn from a trace with at least one.

    The rate deviates slowly from the curve: by `noise`, a share of it (one standard deviation), with a
    correlation time of two minutes. Raises ValueError for a noise of 1 or more.
    """

    curve: Curve
    lengths: Trace
    noise: float = 0.0

    def __post_init__(self) -> None:
        if not 0 <= self.noise < 1:
            raise ValueError("noise must be 0 or greater and less than 1")


Workload = TraceReplay | DrawnArrivals
"""The workload of one model."""

_Arrival = tuple[int, int, int]
"""Microseconds since the beginning, prompt tokens, output tokens."""


def requests(workload: Workload, *, seconds: float, warm_up_seconds: float, seed: int) -> list[Request]:
    """Return the requests of the first `seconds` in order of arrival; equal seeds give equal requests.

    The first `warm_up_seconds` of the workload are additionally played ahead: the time line starts with them,
    at 0.
    """
    chance = random.Random(seed)  # noqa: S311 (not used for security)
    requests = (
        _play(workload, chance) if isinstance(workload, TraceReplay) else _draw(workload, seconds, chance)
    )
    end_us, warm_us = round(seconds * 1e6), round(warm_up_seconds * 1e6)
    arrivals = sorted(item for item in requests if item[0] < end_us)
    ahead = [item for item in arrivals if item[0] < warm_us]
    timed = [*ahead, *((at_us + warm_us, prompt, output) for at_us, prompt, output in arrivals)]
    return [
        Request(request_id=number, arrival_us=at_us, prompt_tokens=prompt, output_tokens=output)
        for number, (at_us, prompt, output) in enumerate(timed)
    ]


def _play(workload: TraceReplay, chance: random.Random) -> Iterator[_Arrival]:
    for entry in workload.trace:
        for copy in range(workload.copies):
            late_seconds = chance.uniform(0, workload.jitter_seconds) if copy else 0.0
            at_us = entry.offset_ms * 1000 + round(late_seconds * 1e6)
            yield at_us, entry.prompt_tokens, entry.output_tokens


def _draw(workload: DrawnArrivals, seconds: float, chance: random.Random) -> Iterator[_Arrival]:
    """Yield arrivals in short steps of constant rate, for which the gaps of a Poisson process are exact."""
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
