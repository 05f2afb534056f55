"""The queue of keys to reconcile."""

from __future__ import annotations

import asyncio

from controller.reconcilers.workers import WorkQueue

A, B, C = ("a",), ("b",), ("c",)


async def test_a_key_that_was_added_twice_is_taken_once() -> None:
    """Other keys are taken in order."""
    queue: WorkQueue[tuple[str]] = WorkQueue()
    for key in (A, B, A):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == [A, B]
    queue.add(C)
    assert await queue.take() == C


async def test_a_timed_key_is_taken_once() -> None:
    """Callers can see that it is timed; otherwise each failure would start its own series of retries."""
    queue: WorkQueue[tuple[str]] = WorkQueue()
    queue.add_later(A, 0.0)
    assert queue.is_timed(A)

    assert await queue.take() == A
    assert not queue.is_timed(A)


async def test_a_key_is_not_processed_twice_at_the_same_time() -> None:
    """A key that is added meanwhile is processed afterwards."""
    queue: WorkQueue[tuple[str]] = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()

    queue.done(A)
    assert await second == A
