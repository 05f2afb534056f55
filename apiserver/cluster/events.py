"""Recording of Kubernetes events, which `kubectl describe` and `kubectl events` show.

Occurrences are aggregated into events: repetitions only increase a count, and the rate is limited. The
numbers are those of client-go: a burst of 25 events per object, then one every five minutes; an ongoing
series is written again every five minutes.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Literal

from apiserver.cluster.errors import AlreadyExists, ClusterError, NotFound, Unavailable
from apiserver.cluster.resource import EVENTS
from apiserver.cluster.timing import Backoff, Timing, rfc3339_micro, utc_now
from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Callable

    from apiserver.cluster.client import Cluster
    from apiserver.schema.json import Json


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
class EventWrite:
    """The instruction to write event `number`; with a count above one, as the next state of its series."""

    number: int
    count: int


@dataclass(slots=True)
class _ActionSeries:
    number: int
    type: EventKind
    reason: str
    meaning: str
    count: int
    sent: datetime


@dataclass(slots=True)
class _ObjectEvents:
    budget: float
    seen: datetime
    series: dict[str, _ActionSeries]
    """The last event of each action."""


class EventSeries:
    """The recent events of each object; beyond a limit, the least recently used object is dropped."""

    def __init__(self) -> None:
        self._objects: OrderedDict[tuple[tuple[str, str], ...], _ObjectEvents] = OrderedDict()
        self._number = 0

    def decide(self, occurrence: Occurrence, now: datetime) -> EventWrite | None:
        """Return what to write about an occurrence; None if it is a repetition or beyond the rate limit."""
        known = self._recall(occurrence.regarding, now)
        series = known.series.get(occurrence.action)
        if series and (series.type, series.reason, series.meaning) == _meaning_of(occurrence):
            return _repeat(series, now)
        if known.budget < 1.0:
            return None
        known.budget -= 1.0
        self._number += 1
        known.series[occurrence.action] = _ActionSeries(
            self._number, *_meaning_of(occurrence), count=1, sent=now
        )
        return EventWrite(self._number, 1)

    def _recall(self, regarding: tuple[tuple[str, str], ...], now: datetime) -> _ObjectEvents:
        known = self._objects.setdefault(regarding, _ObjectEvents(float(BURST), now, {}))
        self._objects.move_to_end(regarding)
        if len(self._objects) > REMEMBERED_OBJECTS:
            self._objects.popitem(last=False)
        known.budget = min(BURST, known.budget + max(now - known.seen, timedelta()) / REFILL_INTERVAL)
        known.seen = now
        return known


def _meaning_of(occurrence: Occurrence) -> tuple[EventKind, str, str]:
    return occurrence.type, occurrence.reason, occurrence.meaning


def _repeat(series: _ActionSeries, now: datetime) -> EventWrite | None:
    series.count += 1
    if now - series.sent < SERIES_INTERVAL:
        return None
    series.sent = now
    return EventWrite(series.number, series.count)


log = EventLogger(__name__)

NOTE_LIMIT_BYTES = 1024
_NAME_LIMIT = 200
_QUEUE_LIMIT = 1000
_TRIES = 4
_REFERENCE_MEMBERS = ("apiVersion", "kind", "namespace", "name", "uid")


@dataclass(frozen=True, slots=True)
class _Letter:
    occurrence: Occurrence
    send: EventWrite
    time: datetime


class EventRecorder:
    """Writes events (events.k8s.io/v1) in the background, on a best-effort basis.

    Occurrences with the same meaning form one event, whose series counts them. `controller` and `instance`
    are the reporting controller, such as `llmd.ai/stowplan`, and the pod's name.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        controller: str,
        instance: str,
        now: Callable[[], datetime] = utc_now,
        timing: Timing | None = None,
    ) -> None:
        self._cluster = cluster
        self._controller = controller
        self._instance = instance
        self._now = now
        self._timing = timing or Timing()
        self._series = EventSeries()
        self._queue: asyncio.Queue[_Letter] = asyncio.Queue(_QUEUE_LIMIT)
        self._dropped = 0
        """Occurrences without an event that are not logged yet."""
        self._era = f"{int(now().timestamp() * 1e6):x}"

    def record(
        self,
        regarding: Json,
        *,
        type: EventKind,  # noqa: A002 (the term of the API)
        reason: str,
        action: str,
        note: str,
        meaning: str | None = None,
    ) -> None:
        """Record an occurrence on the object `regarding`, without blocking.

        `reason` (why) and `action` (what was done) are CamelCase words. `note` is one sentence, truncated to
        1024 bytes. Set `meaning` if the note contains numbers whose changes are not news.
        """
        occurrence = Occurrence(
            regarding=reference_to(regarding),
            type=type,
            reason=reason,
            action=action,
            note=_truncate(note),
            meaning=note if meaning is None else meaning,
        )
        now = self._now()
        send = self._series.decide(occurrence, now)
        if send is None:
            return
        try:
            self._queue.put_nowait(_Letter(occurrence, send, now))
        except asyncio.QueueFull:
            self._dropped += 1

    async def run(self) -> None:
        """Write events until cancelled; an event that cannot be written is logged and dropped.

        Those that found the queue full are logged as a number, when it is empty or the number is large.
        """
        while True:
            await self._deliver(await self._queue.get())
            if self._dropped and (self._queue.empty() or self._dropped >= _QUEUE_LIMIT):
                log.warning("events dropped", number=self._dropped, why="too many were waiting to be written")
                self._dropped = 0
            self._queue.task_done()

    async def flush(self) -> None:
        """Wait until `run` has handled everything recorded so far."""
        await self._queue.join()

    async def _deliver(self, letter: _Letter) -> None:
        backoff = Backoff(random=self._timing.random, first_seconds=1.0, limit_seconds=10.0)
        for tries_left in reversed(range(_TRIES)):
            try:
                await self._write(letter)
            except ClusterError as error:
                if not isinstance(error, Unavailable) or not tries_left:
                    log.warning("event not written", error=error.message, note=letter.occurrence.note)
                    return
                await self._timing.sleep(backoff.next_seconds(error.retry_after_seconds))
            else:
                return

    async def _write(self, letter: _Letter) -> None:
        event = self._event(letter)
        try:
            if letter.send.count > 1:
                await self._write_series(event)
            else:
                await self._cluster.create(EVENTS, event)
        except AlreadyExists:
            return  # an earlier attempt succeeded, though its response was lost

    async def _write_series(self, event: Json) -> None:
        metadata = event["metadata"]
        operation = {"op": "add", "path": "/series", "value": event["series"]}
        try:
            await self._cluster.patch_json(
                EVENTS, metadata["name"], [operation], namespace=metadata["namespace"]
            )
        except NotFound:  # events expire after an hour
            await self._cluster.create(EVENTS, event)

    def _event(self, letter: _Letter) -> Json:
        regarding, occurrence, send = dict(letter.occurrence.regarding), letter.occurrence, letter.send
        event: Json = {
            "apiVersion": EVENTS.api_version,
            "kind": EVENTS.kind,
            "metadata": {
                # The start time in microseconds makes names unique across runs and replicas.
                "name": f"{regarding['name'][:_NAME_LIMIT].rstrip('-.')}.{self._era}{send.number:04x}",
                "namespace": regarding.get("namespace") or "default",
            },
            "eventTime": rfc3339_micro(letter.time),
            "reportingController": self._controller,
            "reportingInstance": self._instance[:128],
            "action": occurrence.action,
            "reason": occurrence.reason,
            "regarding": regarding,
            "note": occurrence.note,
            "type": occurrence.type,
        }
        if send.count > 1:
            event["series"] = {"count": send.count, "lastObservedTime": rfc3339_micro(letter.time)}
        return event


def reference_to(obj: Json) -> tuple[tuple[str, str], ...]:
    """Return an object's reference as sorted members; kubectl needs apiVersion and kind to show events."""
    members = {**obj["metadata"], "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    return tuple(sorted((name, members[name]) for name in _REFERENCE_MEMBERS if members.get(name)))


def _truncate(note: str) -> str:
    """Return a note truncated to the API's limit in bytes, without splitting a character."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT_BYTES:
        return note
    return encoded[: NOTE_LIMIT_BYTES - len("…".encode())].decode(errors="ignore") + "…"
