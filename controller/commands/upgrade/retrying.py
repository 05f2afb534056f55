"""Rate limits, retries and polling of calls."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, TypeVar

from apiserver.cluster.errors import ClusterError, Throttled, Unavailable
from apiserver.schema.json import Json
from controller.commands.upgrade.findings import Failure

_AT_ONCE: Final = 8
_THROTTLED_PAUSES_SECONDS: Final = (1.0,) * 30
_UNAVAILABLE_PAUSES_SECONDS: Final = (0.3, 1.0)
_LOOK_AGAIN_SECONDS: Final = 0.2
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """The maximum number of objects per second, and a callback for progress (done, total, and of what)."""

    per_second: float
    tell: Callable[[int, int, str], None]
    what: str = "objects"

    def of(self, what: str) -> Pace:
        """Return the same pace for work that progress names so, such as `pods`."""
        return replace(self, what=what)


async def each(items: Sequence[_T], work: Callable[[_T], Awaitable[_R]], pace: Pace) -> list[_R]:
    """Process every item concurrently and return the results in order; raise the first error.

    The rate is limited, to keep the load on a large cluster low.
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
        pace.tell(done, len(items), pace.what)
        return result

    tasks: list[asyncio.Task[_R]] = []
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(one(position, item)) for position, item in enumerate(items)]
    except ExceptionGroup as errors:
        raise errors.exceptions[0] from errors
    return [task.result() for task in tasks]


async def failures_of(
    items: Sequence[Json], tried: Callable[[Json], Awaitable[str]], pace: Pace
) -> tuple[Failure, ...]:
    """Try every object concurrently, as `each`; `tried` returns why an object fails, or empty."""
    messages = await each(items, tried, pace)
    return tuple(
        Failure(namespace=item["metadata"]["namespace"], name=item["metadata"]["name"], message=message)
        for item, message in zip(items, messages, strict=True)
        if message
    )


async def retry(
    attempt: Callable[[], Awaitable[_T]],
    errors: type[ClusterError] | tuple[type[ClusterError], ...],
    pauses_seconds: Iterable[float],
) -> _T:
    """Return the result of an attempt, retried after each pause while it raises one of `errors`.

    A delay requested by the server replaces the pause. Raises the last error.
    """
    for pause in pauses_seconds:
        try:
            return await attempt()
        except errors as error:
            await asyncio.sleep(error.retry_after_seconds or pause)
    return await attempt()


async def patiently(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of an attempt, retried while throttled; raise Throttled after half a minute.

    After a definition changes, the API server's caches take a moment to fill.
    """
    return await retry(attempt, Throttled, _THROTTLED_PAUSES_SECONDS)


async def steadily(attempt: Callable[[], Awaitable[_T]]) -> _T:
    """Return the result of an attempt, retried a few times while Unavailable."""
    return await retry(partial(patiently, attempt), Unavailable, _UNAVAILABLE_PAUSES_SECONDS)


async def comes_true(holds: Callable[[], Awaitable[bool]], *, within_seconds: float) -> bool:
    """Poll a condition; return whether it holds in time."""
    deadline = asyncio.get_running_loop().time() + within_seconds
    while not await holds():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(_LOOK_AGAIN_SECONDS)
    return True
