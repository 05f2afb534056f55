"""List and watch: keep a sink up to date with a selection of objects, across all interruptions.

The contract is that of client-go's reflector: list, then watch from the resource version of the list; resume
a watch that ends from the last version seen, bookmarks included; list again if that version is too old (410).
Errors of the server or the network are logged and retried with backoff.
"""

from __future__ import annotations

import asyncio
import random as random_module
import time
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unauthorized, Unavailable
from apiserver.log import EventLogger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.resource import Selection
    from apiserver.cluster.transport import WatchEvent
    from apiserver.schema.json import Json


@dataclass(kw_only=True, slots=True)
class Backoff:
    """Exponential backoff up to a limit, in which jitter extends each delay by up to its own length.

    The numbers are those of client-go's reflector. The jitter keeps the many clients of a recovering server
    from retrying at the same time.
    """

    random: Callable[[], float]
    """Returns random numbers in [0, 1)."""
    first_seconds: float = 0.8
    limit_seconds: float = 30.0
    _failures: int = 0

    def next_seconds(self, at_least_seconds: float | None = None) -> float:
        """Return the delay after another failure, at least the one that the server asked for."""
        base = min(self.first_seconds * 2.0**self._failures, self.limit_seconds)
        if base < self.limit_seconds:
            self._failures += 1
        return max(base * (1.0 + self.random()), at_least_seconds or 0.0)

    def reset(self) -> None:
        """Restart from the first delay after a success."""
        self._failures = 0


log = EventLogger(__name__)

_SHORTEST_WATCH_SECONDS = 240
_LONGEST_WATCH_SECONDS = 300
_HEALTHY_SECONDS = 1.0
# After these errors the known version is still valid; after any other, list again.
_RESUMABLE = (Unavailable, Unauthorized, Forbidden)


T = TypeVar("T")


class Sink(Protocol[T]):
    """The receiver of a watch. Its methods must not block; an exception from them ends the watch."""

    def entry_of(self, obj: Json) -> T:
        """Return what to keep of an object. Nothing else of a page is kept while the next one is read."""

    def replace(self, objects: Sequence[T]) -> None:
        """Replace everything by `objects`: objects missing in it no longer exist."""

    def upsert(self, obj: T) -> None:
        """Handle an object that was added or modified."""

    def remove(self, obj: Json) -> None:
        """Handle an object that was deleted; `obj` is its last state."""

    def contact(self) -> None:
        """Handle a sign of life from the server: the known state is current."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Timing:
    """Clock, sleep and random source, as injectable dependencies."""

    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    random: Callable[[], float] = random_module.random


class Watcher(Generic[T]):
    """Watches one selection for one sink, indefinitely or as long as the kind is served."""

    def __init__(
        self,
        cluster: Cluster,
        selection: Selection,
        sink: Sink[T],
        *,
        timing: Timing,
        ends_unserved: bool = False,
    ) -> None:
        self._cluster = cluster
        self._selection = selection
        self._sink = sink
        self._timing = timing
        self._ends_unserved = ends_unserved
        self._backoff = Backoff(random=timing.random)
        self._version: str | None = None

    async def run(self) -> None:
        """List and watch until cancelled. Raises NotFound if a removable kind is no longer served."""
        while True:
            began = self._timing.clock()
            try:
                if self._version is None:
                    await self._list()
                await self._watch(self._version or "")
                if self._timing.clock() - began < _HEALTHY_SECONDS:
                    await self._wait("watch ended at once", None)
            except ClusterError as error:
                if self._ends_unserved and self._version is None and isinstance(error, NotFound):
                    raise
                if not isinstance(error, _RESUMABLE):
                    self._version = None
                await self._wait("watch interrupted", error)

    async def _list(self) -> None:
        objects, version = await self._cluster.list_kept(self._selection, self._sink.entry_of)
        self._sink.replace(objects)
        self._version = version
        self._sink.contact()

    async def _watch(self, version: str) -> None:
        """Pass on events until the server ends the watch; reset the backoff after a second without errors."""
        began = self._timing.clock()
        stream = self._cluster.watch(
            self._selection, resource_version=version, timeout_seconds=self._watch_seconds()
        )
        async with aclosing(stream):
            async for event in stream:
                self._pass_on(event)
                self._clear_backoff(began)
        self._clear_backoff(began)
        self._sink.contact()

    def _clear_backoff(self, began: float) -> None:
        if self._timing.clock() - began >= _HEALTHY_SECONDS:
            self._backoff.reset()

    def _pass_on(self, event: WatchEvent) -> None:
        version = event.resource_version
        if event.type in {"ADDED", "MODIFIED"}:
            self._sink.upsert(self._sink.entry_of(event.object))
        elif event.type == "DELETED":
            self._sink.remove(event.object)
        self._version = version
        self._sink.contact()

    def _watch_seconds(self) -> int:
        """Return the duration of a watch, at random, so that many watches do not end at the same time."""
        spread = _LONGEST_WATCH_SECONDS - _SHORTEST_WATCH_SECONDS
        return _SHORTEST_WATCH_SECONDS + int(self._timing.random() * spread)

    async def _wait(self, what: str, error: ClusterError | None) -> None:
        at_least = error.retry_after_seconds if error else None
        seconds = self._backoff.next_seconds(at_least)
        level = log.info if error is None or isinstance(error, Unavailable) else log.warning
        level(
            what,
            kind=self._selection.resource.kind,
            error=error.message if error else None,
            code=error.code if error else None,
            retry_in_seconds=round(seconds, 1),
        )
        await self._timing.sleep(seconds)
