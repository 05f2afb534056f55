"""Aggregation of occurrences into events: repetitions only increase a count, and the rate is limited.

Pure decisions; `events` writes the events. The numbers are those of client-go: a burst of 25 events per
object, then one every five minutes; an ongoing series is written again every five minutes.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

SERIES_INTERVAL = timedelta(minutes=5)
REFILL_INTERVAL = timedelta(minutes=5)
BURST = 25
REMEMBERED_OBJECTS = 4096

EventKind = Literal["Normal", "Warning"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Occurrence:
    """Something that happened to an object."""

    regarding: tuple[tuple[str, str], ...]
    """The object reference, as sorted members."""
    type: EventKind
    reason: str
    action: str
    note: str
    meaning: str
    """The meaning: occurrences with the same one form a series, even if the numbers in their notes differ."""


@dataclass(frozen=True, slots=True)
class Send:
    """The instruction to write event `number`; with a count above one, as the next state of its series."""

    number: int
    count: int


@dataclass(slots=True)
class _Series:
    number: int
    type: EventKind
    reason: str
    meaning: str
    count: int
    sent: datetime


@dataclass(slots=True)
class _Object:
    budget: float
    seen: datetime
    series: dict[str, _Series]
    """The last event of each action."""


class EventSeries:
    """The recent events of each object; beyond a limit, the least recently used object is dropped."""

    def __init__(self) -> None:
        self._objects: OrderedDict[tuple[tuple[str, str], ...], _Object] = OrderedDict()
        self._number = 0

    def decide(self, occurrence: Occurrence, now: datetime) -> Send | None:
        """Return what to write about an occurrence; None if it is a repetition or beyond the rate limit."""
        known = self._recall(occurrence.regarding, now)
        series = known.series.get(occurrence.action)
        if series and (series.type, series.reason, series.meaning) == _meaning_of(occurrence):
            return _repeat(series, now)
        if known.budget < 1.0:
            return None
        known.budget -= 1.0
        self._number += 1
        known.series[occurrence.action] = _Series(self._number, *_meaning_of(occurrence), count=1, sent=now)
        return Send(self._number, 1)

    def _recall(self, regarding: tuple[tuple[str, str], ...], now: datetime) -> _Object:
        known = self._objects.setdefault(regarding, _Object(float(BURST), now, {}))
        self._objects.move_to_end(regarding)
        if len(self._objects) > REMEMBERED_OBJECTS:
            self._objects.popitem(last=False)
        known.budget = min(BURST, known.budget + max(now - known.seen, timedelta()) / REFILL_INTERVAL)
        known.seen = now
        return known


def _meaning_of(occurrence: Occurrence) -> tuple[EventKind, str, str]:
    return occurrence.type, occurrence.reason, occurrence.meaning


def _repeat(series: _Series, now: datetime) -> Send | None:
    series.count += 1
    if now - series.sent < SERIES_INTERVAL:
        return None
    series.sent = now
    return Send(series.number, series.count)
