"""Log events captured by a test."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from apiserver.schema.json import Json


@contextmanager
def capture_logs(also: Callable[[], Json] = dict) -> Iterator[list[Json]]:
    """Return a list that receives `event`, `log_level` and the members of our events, and those of `also`."""
    lines: list[Json] = []

    class Capture(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            if hasattr(record, "members"):
                named = {"event": record.msg, "log_level": record.levelname.lower()}
                lines.append(named | record.members | also())

    root, capture = logging.getLogger(), Capture()
    level = root.level
    root.addHandler(capture)
    root.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        root.removeHandler(capture)
        root.setLevel(level)
