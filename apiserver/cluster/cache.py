"""A local, always current copy of a selection of objects."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import TYPE_CHECKING

from apiserver.cluster.errors import NotFound
from apiserver.cluster.selection import Selection
from apiserver.cluster.watch import Timing, Watcher

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from apiserver.cluster.client import Cluster
    from apiserver.cluster.resource import Resource
    from apiserver.schema.json import Json

Key = tuple[str, str]
"""Namespace (empty for objects without one) and name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    """What happened to one object: `old` is None when it is new, `new` when it is gone."""

    key: Key
    old: Json | None
    new: Json | None


@dataclass(frozen=True, slots=True)
class _Entry:
    key: Key
    stamp: tuple[str, str]
    """uid and resource version: equal stamps mean equal objects."""
    object: Json


class Cache:
    """Objects of one selection by namespace and name, kept current by `run`.

    What it returns is shared with every other reader: never change it, copy first. It may lag behind what
    this process has itself written. `reduce` keeps only what is needed of each object as soon as it is read
    (it may change the object that it is given): a list is never in memory as a whole.
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
        self._timing = timing or Timing()
        selection = Selection(
            resource=resource,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            metadata_only=metadata_only,
        )
        self.resource = resource
        self.synced = asyncio.Event()
        """Set once the first list is in."""
        self._watcher = Watcher(cluster, selection, self, timing=self._timing, ends_unserved=ends_unserved)
        self._reduce = reduce
        self._entries: dict[Key, _Entry] = {}
        self._items: tuple[Json, ...] | None = ()
        self._subscribers: list[Callable[[Change], None]] = []
        self._contact_time: float | None = None

    async def run(self) -> None:
        """Keep the copy current until cancelled; errors of the server are waited out.

        With `ends_unserved` it is emptied, and NotFound raised, once the kind is served no longer.
        """
        try:
            await self._watcher.run()
        except NotFound:
            self.replace(())
            self.synced.clear()
            raise

    def get(self, namespace: str | None, name: str) -> Json | None:
        """Return an object, or None when there is none of this name."""
        entry = self._entries.get((namespace or "", name))
        return entry.object if entry else None

    def items(self) -> tuple[Json, ...]:
        """Return all objects, sorted by namespace and name."""
        if self._items is None:
            self._items = tuple(entry.object for _, entry in sorted(self._entries.items(), key=_key_of_item))
        return self._items

    def subscribe(self, callback: Callable[[Change], None]) -> Callable[[], None]:
        """Call `callback` with every change, at once with every object that is there; returns how to stop it.

        It must not wait. What it raises ends `run`.
        """
        self._subscribers.append(callback)
        for key, entry in sorted(self._entries.items(), key=_key_of_item):
            callback(Change(key=key, old=None, new=entry.object))
        return lambda: self._subscribers.remove(callback)

    def age_seconds(self) -> float:
        """Return the time since the server last said anything, infinite before the first list.

        A quiet, healthy watch is heard from about once a minute (bookmarks), at the latest in five minutes.
        """
        if self._contact_time is None:
            return float("inf")
        return self._timing.clock() - self._contact_time

    def kept(self, obj: Json) -> _Entry:
        """Return what is stored of an object (see `Sink`)."""
        key, stamp = key_of(obj), _stamp_of(obj)
        known = self._entries.get(key)
        if known and known.stamp == stamp:
            return known
        return _Entry(key, stamp, self._reduce(obj) if self._reduce else obj)

    def replace(self, objects: Sequence[_Entry]) -> None:
        """Take a whole list (see `Sink`); what vanished while nobody watched is reported as gone."""
        listed = {entry.key for entry in objects}
        for key in [key for key in self._entries if key not in listed]:
            self._drop(key)
        for entry in objects:
            self.upsert(entry)
        self.synced.set()

    def upsert(self, obj: _Entry) -> None:
        """Take a new or changed object (see `Sink`); the same version twice is no change."""
        known = self._entries.get(obj.key)
        if known and known.stamp == obj.stamp:
            return
        self._entries[obj.key] = obj
        self._items = None
        self._notify(Change(key=obj.key, old=known.object if known else None, new=obj.object))

    def remove(self, obj: Json) -> None:
        """Forget an object that is gone (see `Sink`)."""
        self._drop(key_of(obj))

    def contact(self) -> None:
        """Note the time (see `Sink`)."""
        self._contact_time = self._timing.clock()

    def _drop(self, key: Key) -> None:
        entry = self._entries.pop(key, None)
        if entry:
            self._items = None
            self._notify(Change(key=key, old=entry.object, new=None))

    def _notify(self, change: Change) -> None:
        for callback in tuple(self._subscribers):
            callback(change)


def key_of(obj: Json) -> Key:
    """Return namespace and name of an object."""
    metadata = obj["metadata"]
    return metadata.get("namespace") or "", metadata["name"]


def without_managed_fields(obj: Json) -> Json:
    """Drop the record of who owns which field, often half of an object: a `reduce` for whole objects."""
    obj["metadata"].pop("managedFields", None)
    return obj


def _stamp_of(obj: Json) -> tuple[str, str]:
    metadata = obj["metadata"]
    return metadata.get("uid") or "", metadata["resourceVersion"]


def _key_of_item(item: tuple[Key, _Entry]) -> Key:
    return item[0]
