"""A separate thread for large objects, so that small reviews and conversions are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple, Unpack

import msgspec

from webhooks.review import SMALL_BYTES, AdmissionRequest

# One thread only: its work competes with the event loop for the GIL, and more threads would slow it down.
_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def worked(request: AdmissionRequest, work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return the result of work on the objects of a review; small ones are processed without the thread."""
    if _undecoded_bytes(request) <= SMALL_BYTES:
        return work(*args)
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *args)


def _undecoded_bytes(request: AdmissionRequest) -> int:
    """Return the size of the objects that are still JSON text; those of small reviews are decoded."""
    objects = (request.object, request.old_object)
    return sum(memoryview(item).nbytes for item in objects if isinstance(item, msgspec.Raw))
