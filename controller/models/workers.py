"""Workers that process changed keys from a queue, with a delayed retry after failures.

Each key waits at most once, and is processed by at most one worker. Namespaces take turns, so that none waits
for thousands of keys of another.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

from apiserver.cluster.errors import ClusterError, NotLeading
from apiserver.cluster.timing import Backoff
from apiserver.log import EventLogger
from controller.replica import exit_at_once

_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 300.0

K = TypeVar("K", bound=tuple[str, ...])

_log = EventLogger(__name__)


class WorkQueue(Generic[K]):
    """A queue of keys, which end in a namespace and a name.

    A key that is added while it is processed is processed again afterwards.
    """

    def __init__(self) -> None:
        self._ready: dict[str, deque[K]] = {}
        """Keys by namespace, without empty ones."""

        self._turns: asyncio.Queue[str] = asyncio.Queue()
        """Each namespace with ready keys once."""

        self._waiting: set[K] = set()
        self._active: set[K] = set()
        self._timed: set[K] = set()

    def add(self, key: K) -> None:
        """Queue a key."""
        if key in self._waiting:
            return
        self._waiting.add(key)
        if key not in self._active:
            self._put(key)

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
        """Wait for a key and return it; the caller must call `finish` afterwards."""
        namespace = await self._turns.get()
        keys = self._ready[namespace]
        key = keys.popleft()
        if keys:
            self._turns.put_nowait(namespace)
        else:
            del self._ready[namespace]
        self._waiting.discard(key)
        self._active.add(key)
        return key

    def finish(self, key: K) -> None:
        """Mark the processing of a key as ended, whatever its result."""
        self._active.discard(key)
        if key in self._waiting:
            self._put(key)

    def _put(self, key: K) -> None:
        namespace = key[-2]
        if namespace not in self._ready:
            self._ready[namespace] = deque()
            self._turns.put_nowait(namespace)
        self._ready[namespace].append(key)


class Workers(WorkQueue[K]):
    """A queue with the workers that share it."""

    def __init__(self) -> None:
        super().__init__()
        self._retries: dict[K, Backoff] = {}

    async def run(self, number: int, reconcile: Callable[[K], Awaitable[bool]]) -> None:
        """Process keys until cancelled; `reconcile` returns whether no retry is needed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(self._work(reconcile))

    async def _work(self, reconcile: Callable[[K], Awaitable[bool]]) -> None:
        while True:
            key = await self.take()
            try:
                is_done = await reconcile(key)
            except NotLeading:
                exit_at_once()
            except ClusterError as error:
                _log.warning("not finished", object="/".join(key), error=error.message)
                self._retry(key)
            except Exception:  # noqa: BLE001 (an error of one object must not affect others)
                _log.exception("failed", object="/".join(key))
                self._retry(key)
            else:
                if is_done:
                    self._retries.pop(key, None)
                else:
                    self._retry(key)
            finally:
                self.finish(key)

    def _retry(self, key: K) -> None:
        """Schedule a retry. Attempts caused by events in the meantime do not change its time or backoff."""
        if self.is_timed(key):
            return
        backoff = self._retries.setdefault(
            key,
            Backoff(
                random=random.random, first_seconds=_FIRST_RETRY_SECONDS, limit_seconds=_LONGEST_RETRY_SECONDS
            ),
        )
        self.add_later(key, backoff.next_seconds())
