"""The queue of keys to reconcile."""

from __future__ import annotations

import asyncio

from controller.models.workers import WorkQueue

A, B, C = ("chat", "a"), ("chat", "b"), ("chat", "c")
Key = tuple[str, str]


async def test_a_key_that_was_added_twice_is_taken_once() -> None:
    """Other keys are taken in order."""
    queue: WorkQueue[Key] = WorkQueue()
    for key in (A, B, A):
        queue.add(key)

    assert [await queue.take(), await queue.take()] == [A, B]
    queue.add(C)
    assert await queue.take() == C


async def test_a_timed_key_is_taken_once() -> None:
    """Callers can see that it is timed; otherwise each failure would start its own series of retries."""
    queue: WorkQueue[Key] = WorkQueue()
    queue.add_later(A, 0.0)
    assert queue.is_timed(A)

    assert await queue.take() == A
    assert not queue.is_timed(A)


async def test_a_key_is_not_processed_twice_at_the_same_time() -> None:
    """A key that is added meanwhile is processed afterwards."""
    queue: WorkQueue[Key] = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    second = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not second.done()

    queue.finish(A)
    assert await second == A


async def test_namespaces_take_turns() -> None:
    """Thousands of keys of one namespace delay a key of another by one."""
    queue: WorkQueue[Key] = WorkQueue()
    many = [("many", str(number)) for number in range(1000)]
    for key in (*many, A, B):
        queue.add(key)

    assert [await queue.take() for _ in range(5)] == [many[0], A, many[1], B, many[2]]
    queue.add(many[0])
    queue.finish(many[0])
    queue.add(C)
    assert [await queue.take() for _ in range(998)] == [many[3], C, *many[4:], many[0]][:998]
