"""A local copy of a selection of objects, kept current by list and watch, and an index of cached objects.

The contract is that of client-go's reflector: list, then watch from the resource version of the list; resume
a watch that ends from the last version seen, bookmarks included; list again if that version is too old (410).
Errors of the server or the network are logged and retried with backoff.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from apiserver.cluster.errors import ClusterError, Forbidden, NotFound, Unauthorized, Unavailable
from apiserver.cluster.resource import Selection
from apiserver.cluster.timing import Backoff, Timing
from apiserver.log import EventLogger
from apiserver.schema.json import Json

if TYPE_CHECKING:
    from apiserver.cluster.client import Cluster
    from apiserver.cluster.resource import Resource
    from apiserver.cluster.transport import WatchEvent


_log = EventLogger(__name__)

_SHORTEST_WATCH_SECONDS = 240
_LONGEST_WATCH_SECONDS = 300
_HEALTHY_SECONDS = 1.0
# After these errors the known version is still valid; after any other, list again.
_RESUMABLE = (Unavailable, Unauthorized, Forbidden)

Key = tuple[str, str]
"""Namespace (empty for cluster-scoped objects) and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """A change of one object: `old` is None for an added object, `new` for a deleted one."""

    key: Key
    old: Json | None
    new: Json | None


@dataclass(frozen=True, slots=True)
class _StoredObject:
    key: Key
    stamp: tuple[str, str]
    """The uid and resource version: equal stamps imply equal objects."""
    object: Json


class Cache:
    """The objects of one selection by namespace and name, kept current by `run`.

    Returned objects are shared by all readers and must not be modified; copy them first. The cache may lag
    behind this process's own writes. `reduce` strips each object of what is not needed as soon as it is read,
    and may modify its argument, so that a complete list is never in memory.
    """

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        *,
        namespace: str | None = None,
        label_selector: str | None = None,
        field_selector: str | None = None,
        metadata_only: bool = False,
        reduce: Callable[[Json], Json] | None = None,
        timing: Timing | None = None,
        ends_unserved: bool = False,
    ) -> None:
        self._cluster = cluster
        self._timing = timing or Timing()
        self._selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        self.resource = resource
        self.synced = asyncio.Event()
        """Set after the first list."""
        self._ends_unserved = ends_unserved
        self._backoff = Backoff(random=self._timing.random)
        self._version: str | None = None
        self._reduce = reduce
        self._entries: dict[Key, _StoredObject] = {}
        self._items: tuple[Json, ...] | None = ()
        self._subscribers: list[Callable[[Change], None]] = []
        self._contact_time: float | None = None

    async def run(self) -> None:
        """Keep the cache current until cancelled, and retry after errors of the API server.

        With `ends_unserved`, the cache is cleared and NotFound raised when the kind is no longer served.
        """
        while True:
            began = self._timing.clock()
            try:
                if self._version is None:
                    await self._list()
                await self._watch(self._version or "")
                # No error, but without a pause, a server that ends watches at once would be asked in a loop.
                if self._timing.clock() - began < _HEALTHY_SECONDS:
                    await self._wait("watch ended at once", None)
            except ClusterError as error:
                if self._ends_unserved and self._version is None and isinstance(error, NotFound):
                    self.replace(())
                    self.synced.clear()
                    raise
                if not isinstance(error, _RESUMABLE):
                    self._version = None
                await self._wait("watch interrupted", error)

    def get(self, namespace: str | None, name: str) -> Json | None:
        """Return an object, or None if it does not exist."""
        entry = self._entries.get((namespace or "", name))
        return entry.object if entry else None

    def items(self) -> tuple[Json, ...]:
        """Return all objects, sorted by namespace and name."""
        if self._items is None:
            self._items = tuple(entry.object for _, entry in sorted(self._entries.items(), key=_key_of_item))
        return self._items

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call `callback` for each existing object and each later change.

        The callback must not block. An exception that it raises ends `run`.
        """
        self._subscribers.append(callback)
        for key, entry in sorted(self._entries.items(), key=_key_of_item):
            callback(Change(key=key, old=None, new=entry.object))

    def age_seconds(self) -> float:
        """Return the seconds since the server last sent anything, infinite before the first list.

        A healthy watch without changes receives a bookmark about once a minute, and ends after five minutes
        at most.
        """
        if self._contact_time is None:
            return float("inf")
        return self._timing.clock() - self._contact_time

    def why_not_current(self, *, within_seconds: float) -> str | None:
        """Return why the objects are missing, or older than `within_seconds`; None if they are neither."""
        if not self.synced.is_set():
            return f"{self.resource.plural} are not listed yet"
        if self.age_seconds() > within_seconds:
            return f"{self.resource.plural} have not been updated for {self.age_seconds():.0f} s"
        return None

    def entry_of(self, obj: Json) -> _StoredObject:
        """Return the cache entry for an object, which is all that is kept while a list is read."""
        key, stamp = key_of(obj), _stamp_of(obj)
        known = self._entries.get(key)
        if known and known.stamp == stamp:
            return known
        return _StoredObject(key, stamp, self._reduce(obj) if self._reduce else obj)

    def replace(self, objects: Sequence[_StoredObject]) -> None:
        """Replace the cache content by a list; report objects missing in it as deleted."""
        listed = {entry.key for entry in objects}
        for key in [key for key in self._entries if key not in listed]:
            self._drop(key)
        for entry in objects:
            self._upsert(entry)
        self.synced.set()

    async def _list(self) -> None:
        objects, version = await self._cluster.list_kept(self._selection, self.entry_of)
        self.replace(objects)
        self._version = version
        self._contact_time = self._timing.clock()

    async def _watch(self, version: str) -> None:
        """Apply events until the server ends the watch; reset the backoff after a second without errors."""
        began = self._timing.clock()
        # At random, so that many watches do not end at the same time.
        spread = int(self._timing.random() * (_LONGEST_WATCH_SECONDS - _SHORTEST_WATCH_SECONDS))
        stream = self._cluster.watch(
            self._selection, resource_version=version, timeout_seconds=_SHORTEST_WATCH_SECONDS + spread
        )
        async with aclosing(stream):
            async for event in stream:
                self._apply(event)
                self._clear_backoff(began)
        self._clear_backoff(began)
        self._contact_time = self._timing.clock()

    def _clear_backoff(self, began: float) -> None:
        if self._timing.clock() - began >= _HEALTHY_SECONDS:
            self._backoff.reset()

    def _apply(self, event: WatchEvent) -> None:
        version = event.resource_version
        if event.type in {"ADDED", "MODIFIED"}:
            self._upsert(self.entry_of(event.object))
        elif event.type == "DELETED":
            self._drop(key_of(event.object))
        self._version = version
        self._contact_time = self._timing.clock()

    async def _wait(self, what: str, error: ClusterError | None) -> None:
        seconds = self._backoff.next_seconds(error.retry_after_seconds if error else None)
        level = _log.info if error is None or isinstance(error, Unavailable) else _log.warning
        level(
            what,
            kind=self.resource.kind,
            error=error.message if error else None,
            code=error.code if error else None,
            retry_in_seconds=round(seconds, 1),
        )
        await self._timing.sleep(seconds)

    def _upsert(self, entry: _StoredObject) -> None:
        """Add or update an object; ignore it if its version is unchanged."""
        known = self._entries.get(entry.key)
        if known and known.stamp == entry.stamp:
            return
        self._entries[entry.key] = entry
        self._items = None
        self._notify(Change(key=entry.key, old=known.object if known else None, new=entry.object))

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry:
            self._items = None
            self._notify(Change(key=key, old=entry.object, new=None))

    def _notify(self, change: Change) -> None:
        for callback in tuple(self._subscribers):
            callback(change)


def catch_errors(callback: Callable[[Change], None]) -> Callable[[Change], None]:
    """Return a callback whose errors are logged: one object of unexpected form must not end the cache."""

    def tell(change: Change) -> None:
        try:
            callback(change)
        except Exception:  # noqa: BLE001 (an error of one object must not affect others)
            _log.exception("change not processed", object="/".join(change.key))

    return tell


def key_of(obj: Json) -> Key:
    """Return the namespace and name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def without_managed_fields(obj: Json) -> Json:
    """Remove `managedFields`, often half the size of an object. Use as `reduce` to keep the rest."""
    obj["metadata"].pop("managedFields", None)
    return obj


def _stamp_of(obj: Json) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("uid") or "", metadata["resourceVersion"]


def _key_of_item(item: tuple[Key, _StoredObject]) -> Key:
    return item[0]


G = TypeVar("G")
K = TypeVar("K")


class GroupIndex(Generic[G, K]):
    """Objects by a group that they belong to, and by a key within it; `place` returns both."""

    def __init__(self, place: Callable[[Json], tuple[G, K]]) -> None:
        self._place = place
        self._items: dict[G, dict[K, Json]] = {}

    def of(self, group: G) -> Mapping[K, Json]:
        """Return the objects of a group."""
        return self._items.get(group, {})

    def take(self, change: Change) -> None:
        """Apply a change of one object; one that stays in its place keeps its position among the others."""
        new = None if change.new is None else self._place(change.new)
        if change.old is not None and (old := self._place(change.old)) != new:
            group, key = old
            known = self._items[group]
            del known[key]
            if not known:
                del self._items[group]
        if change.new is not None and new is not None:
            group, key = new
            self._items.setdefault(group, {})[key] = change.new
