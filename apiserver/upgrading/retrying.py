"""When calls are made: at a bounded rate, again where that may help, and until what was asked for is so."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeVar

from apiserver.cluster.errors import ClusterError, Throttled, Unavailable

_AT_ONCE: Final = 8
_THROTTLED_PAUSES_SECONDS: Final = (1.0,) * 30
_UNAVAILABLE_PAUSES_SECONDS: Final = (0.3, 1.0)
_LOOK_AGAIN_SECONDS: Final = 0.2
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How many objects are worked on per second, and who is told how many are done of how many."""

    per_second: float
    tell: Callable[[int, int], None]


async def each(items: Sequence[_T], work: Callable[[_T], Awaitable[_R]], pace: Pace) -> list[_R]:
    """Work on every item and return the results in order; the first error ends it.

    The rate is bounded, so that a large cluster notices nothing.
    """
    gate, done = asyncio.Semaphore(_AT_ONCE), 0
    began = asyncio.get_running_loop().time()

    async def one(position: int, item: _T) -> _R:
        nonlocal done
        async with gate:
            due = began + position / pace.per_second
            await asyncio.sleep(max(0.0, due - asyncio.get_running_loop().time()))
            result = await work(item)
        done += 1
        pace.tell(done, len(items))
        return result

    tasks: list[asyncio.Task[_R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(position, item)) for position, item in enumerate(items)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


async def retried(
    attempt: Callable[[], Awaitable[_T]],
    errors: type[ClusterError] | tuple[type[ClusterError], ...],
    pauses_seconds: Iterable[float],
) -> _T:
    """Return what an attempt gives, made again after each pause while it ends in one of these errors.

    A server that says how long to wait is waited for as long. Raises the last error.
    """
    for pause in pauses_seconds:
        try:
            return await attempt()
        except errors as error:
            await asyncio.sleep(error.retry_after_seconds or pause)
    return await attempt()


async def patiently(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return what an attempt gives, made again when told to wait; raises Throttled after half a minute.

    After a definition changes, the API server's caches take a moment to fill.
    """
    return await retried(attempt, Throttled, _THROTTLED_PAUSES_SECONDS)


async def steadily(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return what an attempt gives, made again a few times where it may work later."""
    return await retried(partial(patiently, attempt), Unavailable, _UNAVAILABLE_PAUSES_SECONDS)


async def comes_true(holds: Callable[[], Awaitable[bool]], *, within_seconds: float) -> bool:
    """Look again and again; whether it holds in time."""
    deadline = asyncio.get_running_loop().time() + within_seconds
    while not await holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return True
