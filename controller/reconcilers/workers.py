"""Workers that process changed keys, with a delayed retry after failures."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import Final, Generic, TypeVar

import structlog

from apiserver.cluster.backoff import Backoff
from apiserver.cluster.errors import ClusterError, NotLeading
from controller.reconcilers.work_queue import WorkQueue
from controller.replica import exit_at_once

_FIRST_RETRY_SECONDS: Final = 1.0
_LONGEST_RETRY_SECONDS: Final = 300.0

K = TypeVar("K", bound=tuple[str, ...])

_log = structlog.get_logger(__name__)


class Workers(Generic[K]):
    """Workers that share one queue."""

    def __init__(self) -> None:
        self._queue: WorkQueue[K] = WorkQueue()
        self._retries: dict[K, Backoff] = {}

    def add(self, key: K) -> None:
        """Queue a key."""
        self._queue.add(key)

    async def run(self, number: int, reconcile: Callable[[K], Awaitable[bool]]) -> None:
        """Process keys until cancelled; `reconcile` returns whether no retry is needed."""
        async with asyncio.TaskGroup() as group:
            for _ in range(number):
                group.create_task(self._work(reconcile))

    async def _work(self, reconcile: Callable[[K], Awaitable[bool]]) -> None:
        while True:
            key = await self._queue.take()
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
                self._queue.done(key)

    def _retry(self, key: K) -> None:
        """Schedule a retry. Attempts caused by events in the meantime do not change its time or backoff."""
        if self._queue.is_timed(key):
            return
        backoff = self._retries.setdefault(
            key,
            Backoff(
                random=random.random,
                first_seconds=_FIRST_RETRY_SECONDS,
                limit_seconds=_LONGEST_RETRY_SECONDS,
            ),
        )
        self._queue.add_later(key, backoff.next_seconds())
