"""A queue of keys in which each key waits at most once, and is processed by at most one worker."""

from __future__ import annotations

import asyncio
from typing import Generic, TypeVar

K = TypeVar("K")


class WorkQueue(Generic[K]):
    """A queue of keys. A key that is added while it is processed is processed again afterwards."""

    def __init__(self) -> None:
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._waiting: set[K] = set()
        self._active: set[K] = set()
        self._timed: set[K] = set()

    def add(self, key: K) -> None:
        """Queue a key."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._active:
            self._ready.put_nowait(key)

    def add_later(self, key: K, seconds: float) -> None:
        """Queue a key after some time."""
        asyncio.get_running_loop().call_later(seconds, self._due, key)
        self._timed.add(key)

    def is_timed(self, key: K) -> bool:
        """Tell whether a key will be queued after some time, whatever happens before."""
        return key in self._timed

    def _due(self, key: K) -> None:
        self._timed.discard(key)
        self.add(key)

    async def take(self) -> K:
        """Wait for a key and return it; the caller must call `done` afterwards."""
        key = await self._ready.get()
        self._waiting.discard(key)
        self._active.add(key)
        return key

    def done(self, key: K) -> None:
        """Mark the processing of a key as ended, whatever its result."""
        self._active.discard(key)
        if key in self._waiting:
            self._ready.put_nowait(key)
