"""Recording of Kubernetes events, which `kubectl describe` and `kubectl events` show."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.cluster.backoff import Backoff
from apiserver.cluster.errors import AlreadyExists, ClusterError, NotFound, Unavailable
from apiserver.cluster.event_series import EventSeries, Occurrence, Send
from apiserver.cluster.resource import EVENTS
from apiserver.cluster.timestamps import rfc3339_micro, utc_now
from apiserver.cluster.watch import Timing
from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.event_series import EventKind
    from apiserver.schema.json import Json

log = EventLogger(__name__)

NOTE_LIMIT_BYTES = 1024
_NAME_LIMIT = 200
_QUEUE_LIMIT = 1000
_TRIES = 4
_REFERENCE_MEMBERS = ("apiVersion", "kind", "namespace", "name", "uid")


@dataclass(frozen=True, slots=True)
class _Letter:
    occurrence: Occurrence
    send: Send
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
            note=_cut(note),
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


def _cut(note: str) -> str:
    """Return a note truncated to the API's limit in bytes, without splitting a character."""
    encoded = note.encode()
    if len(encoded) <= NOTE_LIMIT_BYTES:
        return note
    return encoded[: NOTE_LIMIT_BYTES - len("…".encode())].decode(errors="ignore") + "…"
