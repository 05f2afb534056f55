"""Structured loggers on top of the standard library, for processes that must start fast.

structlog has the same interface, but importing it takes longer than the rest of the start of a process that
must serve at once; `apiserver.serving.structured` forwards its events to these loggers.
"""

from __future__ import annotations

import logging
from typing import Final

MEMBERS: Final = "members"
"""The attribute of a log record that holds the members of an event."""


class EventLogger:
    """Logs events under one logger name."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        """Use the logger that `logging.getLogger` returns for this name."""
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **members: object) -> None:
        """Log an event that is only useful for debugging."""
        self._write(logging.DEBUG, event, members)

    def info(self, event: str, /, **members: object) -> None:
        """Log a normal event."""
        self._write(logging.INFO, event, members)

    def warning(self, event: str, /, **members: object) -> None:
        """Log an event that may need attention."""
        self._write(logging.WARNING, event, members)

    def error(self, event: str, /, **members: object) -> None:
        """Log an error; `exc_info` may be an exception."""
        self._write(logging.ERROR, event, members)

    def exception(self, event: str, /, **members: object) -> None:
        """Log an error with the exception that is being handled."""
        self._write(logging.ERROR, event, {"exc_info": True} | members)

    def critical(self, event: str, /, **members: object) -> None:
        """Log why the process cannot continue; `exc_info` may be an exception."""
        self._write(logging.CRITICAL, event, members)

    def _write(self, level: int, event: str, members: dict[str, object]) -> None:
        exc_info = members.pop("exc_info", None)
        error = exc_info if isinstance(exc_info, BaseException) else bool(exc_info)
        self._logger.log(level, event, exc_info=error, extra={MEMBERS: members})
