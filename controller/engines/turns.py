"""Concurrent requests to pods, in rounds that silent and slow pods do not delay.

A round waits for all pods that answered promptly before. If a request takes longer than `_PROMPT_SECONDS`,
the round waits for no further pod of this namespace. Pods that were late or had no turn are asked over
connections of their own, and hardly waited for. A request that a round did not wait for continues, and a
later round has its answer. Of both kinds of connections, a namespace may only have a share.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, Generic, NamedTuple, TypeVar

from controller.engines.exposition import UnreadableMetricsError

K = TypeVar("K", bound=tuple[Any, ...])
T = TypeVar("T")

_SHARES: Final = 2
"""A namespace may have one of this many parts of the connections."""

_PROMPT_SECONDS: Final = 0.8
_LATE_SECONDS: Final = 0.1
_LOOK_SECONDS: Final = 0.05

_NOT_YET: Final = f"no answer within {_PROMPT_SECONDS:g} s, or it had no turn behind pods without an answer"
"""Why there is no answer yet; a later round may have one."""


class PodRequest(NamedTuple, Generic[T]):
    """How to ask a pod: read a page from it, and parse the page. Both may raise UnreadableMetricsError."""

    read: Callable[[], Awaitable[str]]
    parse: Callable[[str], Awaitable[T]]


class Turns(Generic[K, T]):
    """Asks pods, whose keys begin with their namespaces."""

    def __init__(self, concurrency: int) -> None:
        self._prompt, self._apart = _Gates(concurrency), _Gates(concurrency)
        self._tasks: dict[K, asyncio.Task[T | str]] = {}
        self._queued: set[K] = set()
        """Those that wait for a connection."""

        self._began: dict[K, float] = {}
        """When those began that are being read."""

        self._late: set[K] = set()
        self._silent: dict[K, str] = {}
        """Why pods did not answer when they were last asked."""

    async def ask(self, requests: Mapping[K, PodRequest[T]]) -> Mapping[K, T | str]:
        """Return what pods answered in this round, or since the last one, or why they did not."""
        answers = self._take(requests)
        self._late &= requests.keys()
        for key, request in requests.items():
            if key not in self._tasks:
                self._tasks[key] = asyncio.create_task(self._ask(key, request))
        apart = [key for key in requests if key in self._late]
        await self._wait([key for key in requests if key not in self._late])
        if pending := self._pending_tasks(apart):
            await asyncio.wait(pending, timeout=_LATE_SECONDS)
        self._late |= self._began.keys() & requests.keys()
        answers |= self._take(requests)
        results = {key: answers.get(key, self._silent.get(key, _NOT_YET)) for key in requests}
        self._silent = {key: item for key, item in results.items() if isinstance(item, str)}
        return results

    async def close(self) -> None:
        """End all requests."""
        for task in self._tasks.values():
            task.cancel()
        await asyncio.gather(*self._tasks.values(), return_exceptions=True)

    def _take(self, keys: Collection[K]) -> dict[K, T | str]:
        """Return the answers that have arrived, and forget their requests."""
        ended = {key: task for key, task in self._tasks.items() if task.done()}
        self._tasks = {key: task for key, task in self._tasks.items() if key not in ended}
        return {key: task.result() for key, task in ended.items() if key in keys}

    async def _wait(self, keys: Sequence[K]) -> None:
        """Wait for pods, but no longer for those of a namespace with a slow one."""
        slow: set[object] = set()
        while pending := self._pending_tasks(key for key in keys if key[0] not in slow):
            await asyncio.wait(pending, timeout=_LOOK_SECONDS)
            due = asyncio.get_running_loop().time() - _PROMPT_SECONDS
            slow |= {key[0] for key, began in self._began.items() if began < due and key not in self._late}
        for key in keys:
            if key[0] in slow and key in self._queued:
                self._tasks.pop(key).cancel()  # it would wait for a connection that others need
                self._late.add(key)

    def _pending_tasks(self, keys: Iterable[K]) -> list[asyncio.Task[T | str]]:
        return [task for key in keys if not (task := self._tasks[key]).done()]

    async def _ask(self, key: K, request: PodRequest[T]) -> T | str:
        gates = self._apart if key in self._late else self._prompt
        self._queued.add(key)
        try:
            async with gates.of_namespace[key[0]], gates.all:  # until the page is parsed: it takes memory
                self._queued.discard(key)
                return await request.parse(await self._page(key, request))
        except UnreadableMetricsError as error:
            return str(error)
        finally:
            self._queued.discard(key)

    async def _page(self, key: K, request: PodRequest[T]) -> str:
        clock = asyncio.get_running_loop().time
        self._began[key] = clock()
        try:
            return await request.read()
        finally:
            is_late = clock() - self._began.pop(key) >= _PROMPT_SECONDS
            (self._late.add if is_late else self._late.discard)(key)


class _Gates:
    """Connections of all namespaces together, and of each."""

    def __init__(self, concurrency: int) -> None:
        self.all = asyncio.Semaphore(concurrency)
        self.of_namespace: defaultdict[object, asyncio.Semaphore] = defaultdict(
            lambda: asyncio.Semaphore(max(1, concurrency // _SHARES))
        )
