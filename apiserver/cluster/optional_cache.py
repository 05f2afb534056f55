"""A cache of objects that may be unreadable; without them, work continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from apiserver.cluster.cache import Cache, Change, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.resource import Resource
from apiserver.log import EventLogger
from apiserver.schema.json import Json

ASK_AGAIN_SECONDS: Final = 300.0
"""The interval of checks for an API to be installed or a permission to be granted, in seconds."""

SILENT_SECONDS: Final = 600.0
"""The age in seconds beyond which a cache that the API server has not confirmed is too old for decisions."""

_RETRY_SECONDS: Final = 5.0

_log = EventLogger(__name__)


class OptionalCache:
    """The objects of one kind while they can be read, and none while they cannot.

    A missing permission is logged once; that the kind is not served is not logged.
    """

    def __init__(
        self,
        cluster: Cluster,
        resource: Resource,
        *,
        without: str,
        silent_seconds: float = SILENT_SECONDS,
        reduce: Callable[[Json], Json] = without_managed_fields,
        label_selector: str | None = None,
        field_selector: str | None = None,
        ask_again_seconds: float = ASK_AGAIN_SECONDS,
    ) -> None:
        self._cluster = cluster
        self._resource = resource
        self._without = without
        self._silent_seconds = silent_seconds
        self._ask_again_seconds = ask_again_seconds
        # Some accounts may list only objects with certain names.
        self._question = {"limit": "1"} | ({"fieldSelector": field_selector} if field_selector else {})
        self._cache = Cache(
            cluster,
            resource,
            label_selector=label_selector,
            field_selector=field_selector,
            reduce=reduce,
            ends_unserved=True,
        )
        self._has_told = False
        self.settled = asyncio.Event()
        """Set once the objects are listed, or known to be unreadable."""

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Call a callback for every change from now on."""
        self._cache.subscribe(callback)

    async def run(self) -> None:
        """Retry until the objects can be read, then keep the cache current, until cancelled."""
        while True:
            pause_seconds = await self._pause_seconds()
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
                continue
            self._has_told = False
            try:
                # In a separate task, since a task group that fails leaves its own task marked as cancelled.
                await asyncio.create_task(self._keep_current())
            except* NotFound:  # the definition was deleted, together with all objects
                _log.info("a kind is no longer served", kind=self._resource.kind)
                await asyncio.sleep(min(_RETRY_SECONDS, self._ask_again_seconds))

    async def _keep_current(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            await self._cache.synced.wait()
            self.settled.set()

    def why_lost(self) -> str | None:
        """Return why objects that were readable no longer are; None if they are, or never were."""
        return self._cache.why_not_current(within_seconds=self._silent_seconds) if self.is_readable else None

    @property
    def is_readable(self) -> bool:
        """Whether the objects have been readable so far; there may be none."""
        return self._cache.synced.is_set()

    def items(self) -> tuple[Json, ...]:
        """Return the objects; none if the server has not confirmed them for too long."""
        if not self._cache.synced.is_set():
            return ()
        if self._cache.age_seconds() > self._silent_seconds:
            self._tell(f"they have not been updated for {self._cache.age_seconds():.0f} s")
            return ()
        self._has_told = False
        return self._cache.items()

    async def _pause_seconds(self) -> float | None:
        """Return None if the objects can be read, else the seconds until the next attempt."""
        try:
            await self._cluster.get_path(self._resource.path(), query=self._question)
        except NotFound:
            self.settled.set()
            return self._ask_again_seconds
        except Forbidden as error:
            self._tell(error.message)
            self.settled.set()
            return self._ask_again_seconds
        except ClusterError:
            return _RETRY_SECONDS
        return None

    def _tell(self, why: str) -> None:
        if not self._has_told:
            _log.warning(f"continuing without {self._without}", kind=self._resource.kind, why=why)
        self._has_told = True
