"""Keys that wait to be worked on."""

from __future__ import annotations

import asyncio

from controller.reconcilers.work_queue import WorkQueue


async def test_a_key_waits_once() -> None:
    """However often it was added."""
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == ["a", "b"]
    queue.add("c")
    assert await queue.take() == "c"


async def test_a_key_is_due_once() -> None:
    """Whoever adds it again meanwhile can see that: else each failure would begin a chain of attempts."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_later("a", 0.0)
    assert queue.is_timed("a")

    assert await queue.take() == "a"
    assert not queue.is_timed("a")


async def test_a_key_is_not_worked_on_twice_at_a_time() -> None:
    """What is added meanwhile is worked on afterwards."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.add("a")
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()

    queue.done("a")
    assert await second == "a"
