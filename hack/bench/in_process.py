"""CPU time of a handler in this process, from request bytes to response bytes."""

from __future__ import annotations

import gc
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

Answerer = Callable[[bytes], bytes]

_BATCH_SECONDS: Final = 0.002


@contextmanager
def frozen_heap() -> Iterator[None]:
    """Exclude existing objects from garbage collection: the cases are not part of a server's heap."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def cpu_per_call_seconds(handle: Answerer, bodies: Iterator[bytes], *, seconds: float) -> float:
    """Call a handler with consecutive bodies for `seconds` of CPU time; return the mean per call."""
    clock = time.thread_time
    began = clock()
    handle(next(bodies))
    batch = max(int(_BATCH_SECONDS / max(clock() - began, 1e-6)), 1)
    calls, began = 0, clock()
    while True:
        for body in itertools.islice(bodies, batch):
            handle(body)
        calls += batch
        if (spent := clock() - began) >= seconds:
            return spent / calls
