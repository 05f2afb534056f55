"""One line per event, from everything that logs: our own code, libraries, and what nobody caught."""

from __future__ import annotations

import logging
import sys
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Literal, TextIO

import structlog
from structlog.processors import format_exc_info

from apiserver.serving.log_record import console_line, json_line

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    from structlog.typing import EventDict, WrappedLogger

    from apiserver.serving.log_record import Event

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]

_LEVELS: dict[LogLevel, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}


def configure_logging(
    *,
    level: LogLevel = "info",
    format: LogFormat | None = None,  # noqa: A002 - the flag's own name
    stream: TextIO | None = None,
    now: Callable[[], datetime] = lambda: datetime.now(UTC),
) -> None:
    """Send every log line of this process to `stream` (standard error by default).

    Without a `format` it is for people on a terminal and JSON elsewhere. Also takes over the standard
    library's logging, its warnings, and exceptions that nobody catches, in any thread.
    """
    lines = _Lines(stream or sys.stderr, format, now)
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            _add_name,
            format_exc_info,
            lines.render,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *names: _Named(str(names[0]) if names else "", lines),
        cache_logger_on_first_use=False,  # we log rarely, and a cached logger could not be configured anew
    )
    logging.basicConfig(level=_LEVELS[level], handlers=[_Bridge(lines)], force=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )


class _Lines:
    """The stream: whole lines, one at a time."""

    def __init__(self, stream: TextIO, form: LogFormat | None, now: Callable[[], datetime]) -> None:
        self._stream = stream
        self._colour = stream.isatty()
        self._form = form or ("console" if self._colour else "json")
        self._now = now
        self._lock = threading.Lock()

    def render(self, _logger: WrappedLogger, _method: str, event: EventDict) -> str:
        record: Event = {**event, "time": self._time()}
        return json_line(record) if self._form == "json" else console_line(record, colour=self._colour)

    def write(self, line: str) -> None:
        with self._lock:
            self._stream.write(line + "\n")
            self._stream.flush()

    def _time(self) -> str:
        return self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class _Named:
    """What structlog writes finished lines to; it carries the logger's name."""

    def __init__(self, name: str, lines: _Lines) -> None:
        self.name = name
        self.debug = self.info = self.warning = self.error = self.critical = lines.write


class _Bridge(logging.Handler):
    """Takes the standard library's records."""

    def __init__(self, lines: _Lines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        event: Event = {
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _message_of(record),
            "exc_info": record.exc_info,
        }
        self._lines.write(self._lines.render(None, "", format_exc_info(None, "", event)))


def _message_of(record: logging.LogRecord) -> str:
    """Return the record's message, even if its arguments do not fit."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 - a log line must not fail because of what it is about
        return f"{record.msg} {record.args!r}"


def _add_name(logger: WrappedLogger, _method: str, event: EventDict) -> EventDict:
    event["logger"] = logger.name
    return event


def _uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if issubclass(kind, KeyboardInterrupt):
        return
    structlog.get_logger(__name__).critical("uncaught exception", exc_info=(kind, error, traceback))
