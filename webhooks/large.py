"""A separate thread for costly objects, so that small reviews and conversions are answered meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar, TypeVarTuple, Unpack

import msgspec

from webhooks.review import SMALL_BYTES, AdmissionRequest, ReviewedObject

# One thread only: its work competes with the event loop for the GIL, and more threads would slow it down.
_thread: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="large")

_EXPRESSION: Final = b'"regex"'
_MOST_EXPRESSIONS: Final = 2
"""The number of regular expressions in a small review. Compiling one can take 40 ms, and an object of 13 kB
has room for hundreds."""

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


async def in_thread(work: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Return the result of work that runs in the thread."""
    return await asyncio.get_running_loop().run_in_executor(_thread, work, *args)


def is_costly(request: AdmissionRequest) -> bool:
    """Tell whether the objects are large or have many expressions; an old one may be judged as well."""
    size_bytes, expressions = 0, 0
    for item in (request.object, request.old_object):
        if isinstance(item, msgspec.Raw):  # those of small reviews are decoded
            size_bytes += memoryview(item).nbytes
            if size_bytes > SMALL_BYTES:
                return True
        spec = item.spec if isinstance(item, ReviewedObject) else item
        # Most have no expression, which a search from the end finds in half the time of counting.
        if isinstance(spec, msgspec.Raw) and (text := bytes(spec)).rfind(_EXPRESSION) >= 0:
            expressions += text.count(_EXPRESSION)
    return expressions > _MOST_EXPRESSIONS
