"""The child process that runs planning: one request in, one plan out, until standard input ends.

It keeps no state, so it may be killed at any time. Any error ends it, with the traceback on standard error;
the parent reports that and starts a new child.
"""

from __future__ import annotations

import gc
import os
import pickle
import resource
import signal
import struct
import sys
import threading
from contextlib import contextmanager
from queue import SimpleQueue
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from controller.planning.decision import Plan
    from controller.planning.inputs import Settings
    from controller.planning.snapshot import Snapshot

    Planner = Callable[[Snapshot, Settings], Plan]

HEADER = struct.Struct(">Q")
"""Length of the pickled body that follows, in bytes."""

READY = b""
"""The first frame of a worker, sent once all imports are done."""

NICENESS = 5


def frame(body: bytes) -> bytes:
    """Return a body prefixed with its length."""
    return HEADER.pack(len(body)) + body


def serve(planner: Planner) -> None:
    """Answer requests until standard input ends, even if that happens during a request."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in a terminal is for the parent, which then ends us
    requests, replies = _take_streams()
    queue: SimpleQueue[bytes] = SimpleQueue()
    threading.Thread(target=_read, args=(requests, queue), daemon=True).start()
    _write(replies, READY)
    while True:
        _answer(queue.get(), replies, planner)
        gc.collect()  # while no request is pending


def _answer(body: bytes, replies: BinaryIO, planner: Planner) -> None:
    with without_collection():
        request = pickle.loads(body)  # noqa: S301 (written by the parent process, over a private pipe)
        _write(replies, pickle.dumps(planner(*request)))


def main(arguments: list[str]) -> None:
    """Limit the address space to the bytes given as the only argument, then serve the real planner."""
    memory_bytes = int(arguments[0])
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    os.nice(NICENESS)
    from controller.planning.plan import plan  # noqa: PLC0415 (loads OR-Tools under the memory limit)

    serve(plan)


def _take_streams() -> tuple[BinaryIO, BinaryIO]:
    """Return private copies of the standard streams, so that prints cannot corrupt the frames."""
    requests, replies = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    return requests, replies


def _read(requests: BinaryIO, queue: SimpleQueue[bytes]) -> None:
    """Queue the requests; exit when the parent does, even during planning."""
    while header := requests.read(HEADER.size):
        queue.put(requests.read(HEADER.unpack(header)[0]))
    os._exit(0)


def _write(replies: BinaryIO, body: bytes) -> None:
    replies.write(frame(body))
    replies.flush()


@contextmanager
def without_collection() -> Iterator[None]:
    """Disable the collector: sizing and planning create many objects and few cycles, and it would scan all.

    Cycles are collected afterwards.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


if __name__ == "__main__":
    main(sys.argv[1:])
