"""Simulated time, and pieces of recorded traces played one after the other: real sizes and real bursts."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from controller.simulation.workload import Request, TraceEntry, load_trace, piece


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """The seconds [from, to) of a shipped trace, played at `speed`; the share `keep` is sent.

    Raises ValueError for an empty piece, a speed of 0 or less, or a share outside 0..1.
    """

    trace: str
    from_seconds: float
    to_seconds: float
    speed: float = 1.0
    keep: float = 1.0

    def __post_init__(self) -> None:
        if not 0 <= self.from_seconds < self.to_seconds:
            raise ValueError("from_seconds must be 0 or greater and less than to_seconds")
        if self.speed <= 0:
            raise ValueError("speed must be greater than 0")
        if not 0 <= self.keep <= 1:
            raise ValueError("keep must be between 0 and 1, inclusive; to send more, raise the speed")

    @property
    def duration_seconds(self) -> float:
        """Duration of the phase, in seconds."""
        return (self.to_seconds - self.from_seconds) / self.speed


def thin(entries: Iterable[TraceEntry], *, keep: float) -> Iterator[TraceEntry]:
    """Yield the share `keep` of the entries, as evenly as possible; deterministic, so there is no seed."""
    credit = 0.5
    for entry in entries:
        credit += keep
        if credit >= 1:
            credit -= 1
            yield entry


def requests(phases: Iterable[Phase], *, start_us: int) -> Iterator[Request]:
    """Yield the requests of all phases in order of arrival, numbered from 0 on."""
    begin_us, request_id = start_us, 0
    for phase in phases:
        entries = piece(load_trace(phase.trace), from_seconds=phase.from_seconds, to_seconds=phase.to_seconds)
        for entry in thin(entries, keep=phase.keep):
            yield Request(
                request_id=request_id,
                arrival_us=begin_us + round(entry.offset_ms * 1000 / phase.speed),
                prompt_tokens=entry.prompt_tokens,
                output_tokens=entry.output_tokens,
            )
            request_id += 1
        begin_us += round(phase.duration_seconds * 1e6)


class SimulatedClock:
    """Stays at zero until it is released, then runs `speed` times as fast as `clock` (in seconds)."""

    def __init__(self, *, speed: float = 1.0, clock: Callable[[], float] = time.monotonic) -> None:
        self._speed = speed
        self._clock = clock
        self._released: float | None = None

    def release(self) -> None:
        """Start the clock; no effect if it runs."""
        if self._released is None:
            self._released = self._clock()

    @property
    def seconds(self) -> float:
        """Simulated seconds since the release; 0.0 before it."""
        return 0.0 if self._released is None else (self._clock() - self._released) * self._speed

    @property
    def microseconds(self) -> int:
        """Simulated time in whole microseconds, the unit of the simulation."""
        return round(self.seconds * 1e6)
