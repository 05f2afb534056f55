"""Log output: one line per event, from our own code, libraries and uncaught exceptions."""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

from apiserver.serving.log_record import console_line, json_line
from apiserver.serving.logger import MEMBERS, EventLogger

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from apiserver.serving.log_record import Event

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]


def configure_logging(
    *,
    level: LogLevel = "info",
    format: LogFormat | None = None,  # noqa: A002 (the name of the flag)
    stream: TextIO | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Write all log lines of this process to `stream` (standard error by default).

    Without a `format`, lines are for people on a terminal and JSON elsewhere. This covers the standard
    library's logging, Python warnings, and uncaught exceptions in any thread.
    """
    lines = _Lines(stream or sys.stderr, format, now)
    logging.basicConfig(level=level.upper(), handlers=[_Bridge(lines)], force=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )


class _Lines:
    """The output stream, to which complete lines are written one at a time."""

    def __init__(self, stream: TextIO, form: LogFormat | None, now: Callable[[], datetime]) -> None:
        self._stream = stream
        self._colour = stream.isatty()
        self._form = form or ("console" if self._colour else "json")
        self._now = now
        self._lock = threading.Lock()

    def write(self, event: Event) -> None:
        record: Event = {**event, "time": self._time()}
        line = json_line(record) if self._form == "json" else console_line(record, colour=self._colour)
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()

    def _time(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Bridge(logging.Handler):
    """Writes records of the standard library's logging."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        members: Event = getattr(record, MEMBERS, {})
        named: Event = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _message_of(record),
        }
        error = record.exc_info[1] if record.exc_info else None
        failed: Event = {} if error is None else {"exception": _traceback_of(error)}
        self._lines.write(members | named | failed)


def _traceback_of(error: BaseException) -> str:
    return "".join(traceback.format_exception(error)).removesuffix("\n")


def _message_of(record: logging.LogRecord) -> str:
    """Return the record's message, even if its arguments do not match the format."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 (logging must not fail because of a value)
        return f"{record.msg} {record.args!r}"


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    EventLogger(__name__).critical("uncaught exception", exc_info=error.with_traceback(trace))
