"""The queue of keys to reconcile."""

from __future__ import annotations

import asyncio

from controller.reconcilers.work_queue import WorkQueue


async def test_a_key_that_was_added_twice_is_taken_once() -> None:
    """Other keys are taken in order."""
    queue: WorkQueue[str] = WorkQueue()
    for key in ("a", "b", "a"):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == ["a", "b"]
    queue.add("c")
    assert await queue.take() == "c"


async def test_a_timed_key_is_taken_once() -> None:
    """Callers can see that it is timed; otherwise each failure would start its own series of retries."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add_later("a", 0.0)
    assert queue.is_timed("a")

    assert await queue.take() == "a"
    assert not queue.is_timed("a")


async def test_a_key_is_not_processed_twice_at_the_same_time() -> None:
    """A key that is added meanwhile is processed afterwards."""
    queue: WorkQueue[str] = WorkQueue()
    queue.add("a")
    await queue.take()
    queue.add("a")
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()

    queue.done("a")
    assert await second == "a"
