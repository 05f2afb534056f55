"""Work on many objects at a bounded rate, so that a large cluster notices nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeVar

_AT_ONCE: Final = 8
_T = TypeVar("_T")
_R = TypeVar("_R")


@dataclass(frozen=True, kw_only=True, slots=True)
class Pace:
    """How many objects are worked on per second, and who is told how many are done of how many."""

    per_second: float
    tell: Callable[[int, int], None]


async def each(items: Sequence[_T], work: Callable[[_T], Awaitable[_R]], pace: Pace) -> list[_R]:
    """Work on every item and return the results in order; the first error ends it."""
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
