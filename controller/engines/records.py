"""The last response of every engine, what it counted since the previous one, and since when models are idle.

Pure state: readings go in, reports for sizing come out. A pod that did not respond keeps its last reading,
which ages; sizing decides what its age means.

A model is considered busy until its engines have been observed idle: after a restart, and while none of them
reports, the time since its last request starts over.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from apiserver.kinds.identity import Key
from controller.engines.readings import EndpointReading, Reading, Totals
from controller.sizing.lengths import add_histograms
from controller.sizing.records import NO_HISTOGRAM, EngineInterval, EngineReport, Histogram

_SHORTEST_SECONDS: Final = 1.0
"""Minimum time between two responses for a rate."""

_HISTOGRAMS: Final = ("prompt_lengths", "first_token_times", "token_times")
_COUNTS: Final = tuple(
    item.name for item in fields(EngineInterval) if item.name not in (*_HISTOGRAMS, "seconds")
)
"""What is summed over the endpoints of a pod."""

_COUNTERS: Final = tuple(name for name in _COUNTS if name not in ("waiting_change", "ended"))
"""Those of them that only grow while an engine runs."""

_NOTHING: Final[dict[str, Any]] = dict.fromkeys((*_COUNTERS, "ended"), 0.0)
_NEW: Final = EndpointReading(waiting=0, totals=Totals(**_NOTHING))
"""The state of an endpoint before its first request."""


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRecord:
    """The record of one engine."""

    reading: Reading
    interval: EngineInterval | None = None
    """The interval between the last two readings; None unless the last one is of the last cycle and of the
    same endpoints as the one before.
    """


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineRecords:
    """The records of all engines, by (namespace, name) of the pod."""

    records: Mapping[Key, EngineRecord] = field(default_factory=dict)
    present: frozenset[Key] = frozenset()
    born: Mapping[Key, float | None] = field(default_factory=dict)
    """Pods that were not ready when they appeared, with the time of the last update before they were first
    asked; None until they are. The counters of their engines began at 0 after that time. For a pod that
    was ready when it appeared, the start of its counters is unknown: it may have run unobserved for days.
    """

    updated_seconds: float | None = None
    """Time of the last update; None before the first."""

    def update(
        self,
        readings: Mapping[Key, Reading],
        present: Iterable[Key],
        *,
        scraped_keys: Iterable[Key],
        now_seconds: float,
    ) -> EngineRecords:
        """Return the records updated with new readings.

        `present` are all engine pods; records of others are dropped. `scraped_keys` are the ready ones that
        were queried, whether they responded or not: a pod that is not ready gets no requests.
        """
        here, ready = frozenset(present), frozenset(scraped_keys)
        born = {
            key: self.updated_seconds if since is None and key in ready else since
            for key, since in self._first_seen(here, ready).items()
        }
        records = {
            key: replace(record, interval=None) if record.interval else record
            for key, record in self.records.items()
            if key in here
        }
        for key, reading in readings.items():
            if key in here:
                records[key] = _extend(records.get(key), reading, since_seconds=born.get(key))
        return EngineRecords(records=records, present=here, born=born, updated_seconds=now_seconds)

    def reports(self, *, now_seconds: float) -> Mapping[Key, EngineReport]:
        """Return a report for each engine that ever responded."""
        return {
            key: EngineReport(
                age_seconds=max(0.0, now_seconds - record.reading.time_seconds),
                waiting=record.reading.waiting,
                running=record.reading.running,
                kv_tokens=record.reading.kv_tokens,
                engines=record.reading.engines,
                interval=record.interval,
            )
            for key, record in self.records.items()
        }

    def _first_seen(self, here: frozenset[Key], ready: frozenset[Key]) -> Mapping[Key, float | None]:
        known = {key: since for key, since in self.born.items() if key in here}
        if self.updated_seconds is None:
            return known
        return known | dict.fromkeys(here - self.present - ready)


def _extend(record: EngineRecord | None, reading: Reading, *, since_seconds: float | None) -> EngineRecord:
    """Return the record with a reading; `since_seconds` is when its counters began, None if unknown."""
    if record is not None:
        if reading.time_seconds <= record.reading.time_seconds:
            return record  # the source has nothing newer
        if record.reading.parts.keys() != reading.parts.keys():
            return _of_other_endpoints(record, reading)
        return EngineRecord(reading=reading, interval=_between(record.reading, reading))
    if since_seconds is None:
        return EngineRecord(reading=reading)
    seconds = reading.time_seconds - since_seconds
    if seconds < _SHORTEST_SECONDS:
        return EngineRecord(reading=reading)
    counted = [_interval(_NEW, part, seconds=seconds) for part in reading.parts.values()]
    return EngineRecord(reading=reading, interval=_together(counted))


def _of_other_endpoints(record: EngineRecord, reading: Reading) -> EngineRecord:
    """Return the record with a reading whose endpoints differ from those of the last one.

    What an endpoint counted while its responses were missing is not of one cycle, and what the others counted
    in the meantime is incomplete: the rate is unknown, and counting continues from here. The cache size and
    the number of engines are kept until the same endpoints have responded twice, because an endpoint that
    missed a scrape has not lost them.
    """
    known = record.reading
    return EngineRecord(reading=replace(reading, kv_tokens=known.kv_tokens, engines=known.engines))


def _between(before: Reading, now: Reading) -> EngineInterval | None:
    """Return the interval between two readings of the same endpoints."""
    seconds = now.time_seconds - before.time_seconds
    if seconds < _SHORTEST_SECONDS:
        return None
    return _together([_since(before.parts[key], part, seconds=seconds) for key, part in now.parts.items()])


def _since(before: EndpointReading, now: EndpointReading, *, seconds: float) -> EngineInterval:
    """Return the interval of one endpoint; counters that decreased restarted at 0."""
    if _has_restarted(before.totals, now.totals):
        return _interval(_NEW, now, seconds=seconds)
    return _interval(before, now, seconds=seconds)


def _interval(before: EndpointReading, now: EndpointReading, *, seconds: float) -> EngineInterval:
    """Return what an endpoint counted; computed tokens are at most those of the prompts that are known."""
    former, totals = before.totals, now.totals
    counts: dict[str, Any] = {
        name: _growth(getattr(former, name), getattr(totals, name)) for name in _COUNTERS
    }
    counts["computed_prompt_tokens"] = min(counts["computed_prompt_tokens"], counts["examined_prompt_tokens"])
    counts |= {name: _histogram_since(getattr(former, name), getattr(totals, name)) for name in _HISTOGRAMS}
    return EngineInterval(
        **counts,
        seconds=seconds,
        waiting_change=now.waiting - before.waiting,
        ended=totals.ended - former.ended,
    )


def _growth(before: float | None, now: float | None) -> float:
    """Return the growth of a counter; 0 while it is unknown, and if one derived from two others decreased."""
    return 0.0 if before is None or now is None else max(0.0, now - before)


def _together(intervals: Sequence[EngineInterval]) -> EngineInterval:
    """Return the sum of the intervals of a pod's endpoints, which cover the same time."""
    first, *others = intervals
    if not others:
        return first
    sums: dict[str, Any] = {name: sum([getattr(item, name) for item in intervals]) for name in _COUNTS}
    sums |= {name: add_histograms([getattr(item, name) for item in intervals]) for name in _HISTOGRAMS}
    return EngineInterval(**sums, seconds=first.seconds)


def _histogram_since(before: Histogram, now: Histogram) -> Histogram:
    """Return the histogram of the interval, or that of a new engine; none if the buckets changed."""
    bounds, counts = now
    known, former = before
    if bounds != known:
        return NO_HISTOGRAM if known else now
    return bounds, tuple([max(0.0, count - earlier) for count, earlier in zip(counts, former, strict=True)])


_RESTARTING: Final = ("first_tokens", "prompt_tokens", "generation_tokens", "finished", "inter_token_seconds")


def _has_restarted(before: Totals, now: Totals) -> bool:
    """Return whether a counter decreased, which means that the process restarted."""
    return any(getattr(now, name) < getattr(before, name) for name in _RESTARTING)


@dataclass(frozen=True, kw_only=True, slots=True)
class Idleness:
    """Time of the last activity, by (namespace, model)."""

    last_seconds: Mapping[Key, float] = field(default_factory=dict)
    """When engines last had requests, or components in front of them."""

    awaited_seconds: Mapping[Key, float] = field(default_factory=dict)
    """When requests were last visible in front of a model."""

    def update(
        self, models: Mapping[Key, Key], *, before: EngineRecords, after: EngineRecords, now_seconds: float
    ) -> Idleness:
        """Return the state updated from engine records; `models` is the model of each pod."""
        signs: dict[Key, float] = {}
        for pod, model in models.items():
            record = after.records.get(pod)
            if record is not None:
                known = signs.get(model, self.last_seconds.get(model, now_seconds))
                is_busy = _is_busy(before.records.get(pod), record)
                signs[model] = max(known, record.reading.time_seconds) if is_busy else known
        return Idleness(last_seconds=signs)

    def idle_seconds(self, model: Key, *, now_seconds: float) -> float:
        """Return the time since a model's last request, in seconds; 0 for an unobserved model."""
        return max(0.0, now_seconds - self.last_seconds.get(model, now_seconds))

    def with_activity(self, awaited_seconds: Mapping[Key, float], *, active: Mapping[Key, float]) -> Idleness:
        """Return the state with what components in front of models show.

        `active` has the models that are not idle although their engines may be, with a time. Models without
        engines are not among `last_seconds`.
        """
        last = {key: max(time, active.get(key, time)) for key, time in self.last_seconds.items()}
        return Idleness(last_seconds=last, awaited_seconds=awaited_seconds)

    def is_awaited(self, model: Key, *, now_seconds: float, within_seconds: float) -> bool:
        """Return whether requests were visible in front of a model now, or within a time."""
        seconds = self.awaited_seconds.get(model)
        return seconds is not None and now_seconds - seconds <= within_seconds


def _is_busy(before: EngineRecord | None, after: EngineRecord) -> bool:
    """Return whether an engine has requests, or its counters changed since the last reading."""
    now = after.reading
    if now.running or now.waiting or before is None:
        return bool(now.running or now.waiting)
    return now.parts != before.reading.parts
