"""Log output: one line per event with any content, from our code, libraries and uncaught exceptions."""

from __future__ import annotations

import json
import logging
import sys
import threading
from contextlib import suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TextIO

if TYPE_CHECKING:
    from types import TracebackType

    _SysExcInfo = tuple[type[BaseException], BaseException, TracebackType | None]

LogFormat = Literal["json", "console"]
LogLevel = Literal["debug", "info", "warning", "error"]
Event = dict[str, Any]
"""The members of a line: time, level, logger and event, then those of the call, with values of any type."""

_MEMBERS: Final = "members"
_VALUE_LIMIT: Final = 8192
_EXCEPTION_LIMIT: Final = 32_768
_COLOURS: Final = {"debug": 90, "info": 32, "warning": 33, "error": 31, "critical": 41}


class EventLogger(logging.LoggerAdapter[logging.Logger]):
    """Logs events with members, such as `info("saved", name="x")`; `exc_info` may be an exception."""

    def __init__(self, name: str) -> None:
        """Use the logger that `logging.getLogger` returns for this name."""
        super().__init__(logging.getLogger(name), {})

    def log(  # type: ignore[override] # a member can have the name of a parameter
        self,
        level: int,
        event: str,
        /,
        *_: object,
        exc_info: bool | BaseException | None = None,
        **members: object,
    ) -> None:
        """Log an event; the methods of the levels call this one.

        The record has no caller: no line shows it, and the search would take a fifth of the time.
        """
        logger = self.logger
        if logger.isEnabledFor(level):
            error = sys.exc_info() if exc_info is True else _exception(exc_info)
            extra = {_MEMBERS: members}
            logger.handle(logger.makeRecord(logger.name, level, "", 0, event, (), error, extra=extra))


def configure_logging(
    *,
    level: LogLevel = "info",
    format: LogFormat | None = None,  # noqa: A002 (the name of the flag)
    stream: TextIO | None = None,
) -> None:
    """Write all log lines of this process to `stream` (standard error by default).

    Without a `format`, lines are for people on a terminal and JSON elsewhere. This covers the standard
    library's logging, Python warnings, and uncaught exceptions in any thread.
    """
    handler = logging.StreamHandler(stream or sys.stderr)
    is_terminal = handler.stream.isatty()
    handler.setFormatter(_Lines(format or ("console" if is_terminal else "json"), colour=is_terminal))
    logging.logThreads = logging.logProcesses = logging.logMultiprocessing = False  # no line contains them
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(capture=True)
    sys.excepthook = _uncaught
    threading.excepthook = lambda args: _uncaught(
        args.exc_type, args.exc_value or args.exc_type(), args.exc_traceback
    )


def _exception(error: BaseException | Literal[False] | None) -> _SysExcInfo | None:
    return (type(error), error, error.__traceback__) if isinstance(error, BaseException) else None


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    if not issubclass(kind, KeyboardInterrupt):
        EventLogger(__name__).critical("uncaught exception", exc_info=error.with_traceback(trace))


class _Lines(logging.Formatter):
    """Formats records of the standard library's logging."""

    def __init__(self, form: LogFormat, *, colour: bool) -> None:
        super().__init__()
        self._form, self._colour = form, colour

    def format(self, record: logging.LogRecord) -> str:
        """Return a record as one line, or with its traceback below on a console."""
        event: Event = {
            "time": _time_of(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "event": _message_of(record),
        }
        members: Event = getattr(record, _MEMBERS, {})
        event |= {name: value for name, value in members.items() if name not in event}
        error = record.exc_info
        exception = _tail(self.formatException(error)) if error and error[1] else ""
        if self._form == "json":
            return json_line(event, exception)
        return console_line(event, exception, colour=self._colour)


def _time_of(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC).replace(tzinfo=None)
    return f"{moment.isoformat(timespec='microseconds')}Z"


def _message_of(record: logging.LogRecord) -> str:
    """Return the record's message, even if its arguments do not match the format."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001 (logging must not fail because of a value)
        return f"{_text(record.msg)} {_text(record.args)}"


def _tail(exception: str) -> str:
    """Return the end of a long traceback, which contains the error."""
    if len(exception) <= _EXCEPTION_LIMIT:
        return exception
    return f"… {len(exception) - _EXCEPTION_LIMIT} before\n{exception[-_EXCEPTION_LIMIT:]}"


def json_line(event: Event, exception: str = "") -> str:
    """Return an event as one line of ASCII JSON; large values are truncated, other types described."""
    with suppress(Exception):  # as in `_plain`
        if not exception and len(line := _strict(event)) <= _VALUE_LIMIT:
            return line
    plain = {_text(name): _plain(value) for name, value in event.items()}
    failed = {"exception": exception} if exception else {}
    return json.dumps(plain | failed, default=_text, separators=(",", ":"))


def console_line(event: Event, exception: str = "", *, colour: bool) -> str:
    """Return an event as text: time, level, sentence and `name=value` pairs, then any traceback."""
    others = dict(event)
    clock, level = str(others.pop("time", ""))[11:23], str(others.pop("level", "info"))
    sentence = _printable(_text(others.pop("event", "")))
    others.pop("logger", None)
    label = f"{level:<8}"
    if colour:
        label, sentence = f"\x1b[{_COLOURS.get(level, 0)}m{label}\x1b[0m", f"\x1b[1m{sentence}\x1b[0m"
    members = [f"{_printable(_text(name))}={_word(value)}" for name, value in others.items()]
    below = ["  " + _printable(line) for line in exception.splitlines()]
    return "\n".join([" ".join([clock, label, sentence, *members]), *below])


def _plain(value: object) -> object:
    """Return a value if it is small and JSON can express it; otherwise a text of bounded size."""
    try:
        size = len(_strict(value))
    except Exception:  # noqa: BLE001 (a value may be endless, or have keys of any type)
        return _text(value)
    return value if size <= _VALUE_LIMIT else _text(value)


def _text(value: object) -> str:
    """Return a value as text of bounded size, even if its `repr` raises."""
    try:
        text = str.__str__(value) if isinstance(value, str) else repr(value)
    except Exception as error:  # noqa: BLE001 (logging must not fail because of a value)
        text = f"<{type(value).__name__}: repr raised {type(error).__name__}>"
    return text if len(text) <= _VALUE_LIMIT else f"{text[:_VALUE_LIMIT]}… {len(text) - _VALUE_LIMIT} more"


def _word(value: object) -> str:
    plain = _plain(value)
    if isinstance(plain, str) and plain and plain.isprintable() and not set(plain) & set(" =\"'"):
        return plain
    text = json.dumps(plain, default=_text, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(plain, default=_text)


def _printable(text: str) -> str:
    """Return text with characters escaped that would move the cursor, end the line or change colors."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


# Built once: `json.dumps` builds an encoder for every call with options.
_strict: Final = json.JSONEncoder(default=_text, separators=(",", ":"), allow_nan=False).encode
