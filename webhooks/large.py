"""Work on large objects, in a thread of its own: small ones and conversions are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple, Unpack

from webhooks.review import AdmissionRequest

SMALL_BYTES: Final = 64 << 10
"""Up to which size a review is small; the largest objects that people write have a tenth of it."""

# One thread: what is in it takes turns with the event loop, and more would take turns from it.
_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def worked(request: AdmissionRequest, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return what comes of work on the objects of a review, done at once where they are small."""
    size = sum(memoryview(text).nbytes for text in (request.object, request.old_object))
    if size <= SMALL_BYTES:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *args)
