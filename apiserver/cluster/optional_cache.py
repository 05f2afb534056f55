"""A local copy of objects that may not be there to be read: work then goes on without them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

import structlog

from apiserver.cluster.cache import Cache, Change, without_managed_fields
from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import ClusterError, Forbidden, NotFound
from apiserver.cluster.resource import Resource
from apiserver.schema.json import Json

ASK_AGAIN_SECONDS: Final = 300.0
"""An API may be installed, or a permission be given, while we run."""

SILENT_SECONDS: Final = 600.0
"""A copy that the API server has not confirmed for so long is too old to decide on."""

_RETRY_SECONDS: Final = 5.0

_log = structlog.get_logger(__name__)


class OptionalCache:
    """Objects of one kind while they can be read, and none while they cannot.

    A missing permission is told once; that nobody serves the kind is nothing to tell.
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
        # Some may list objects of certain names only.
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
        """Set once it is known what there is, or that nothing can be."""

    def subscribe(self, callback: Callable[[Change], None]) -> None:
        """Have changes told to a callback, from now on."""
        self._cache.subscribe(callback)

    async def run(self) -> None:
        """Ask until the objects can be read, keep the copy current while they can, until cancelled."""
        while True:
            pause_seconds = await self._pause_seconds()
            if pause_seconds is not None:
                await asyncio.sleep(pause_seconds)
                continue
            self._has_told = False
            try:
                # A task of its own: a group that fails leaves its task marked as cancelled.
                await asyncio.create_task(self._keep_current())
            except* NotFound:  # its definition was deleted, and all objects with it
                _log.info("a kind is no longer served", kind=self._resource.kind)
                await asyncio.sleep(min(_RETRY_SECONDS, self._ask_again_seconds))

    async def _keep_current(self) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(self._cache.run())
            await self._cache.synced.wait()
            self.settled.set()

    def why_lost(self) -> str | None:
        """Return why objects that could be read no longer can; None where they can, or never could."""
        if self._cache.synced.is_set() and self._cache.age_seconds() > self._silent_seconds:
            return f"{self._resource.plural} have not been updated for {self._cache.age_seconds():.0f} s"
        return None

    @property
    def is_readable(self) -> bool:
        """Whether the objects could be read so far; there may be none."""
        return self._cache.synced.is_set()

    def items(self) -> tuple[Json, ...]:
        """Return the objects; none when the server has not confirmed them for long."""
        if not self._cache.synced.is_set():
            return ()
        if self._cache.age_seconds() > self._silent_seconds:
            self._tell(f"they have not been updated for {self._cache.age_seconds():.0f} s")
            return ()
        self._has_told = False
        return self._cache.items()

    async def _pause_seconds(self) -> float | None:
        """Return None when the objects can be read, else the time until it is worth asking again."""
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
