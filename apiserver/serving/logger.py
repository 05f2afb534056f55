"""Loggers for what serves from the first moment on: an event and its members, by the standard library.

structlog says the same, but loading it takes longer than the whole rest of a process that answers at once;
`apiserver.serving.structured` sends its lines here.
"""

from __future__ import annotations

import logging
from typing import Final

MEMBERS: Final = "members"
"""The attribute of a log record that holds what an event says beside its sentence."""


class EventLogger:
    """Writes events under one name."""

    __slots__ = ("_logger",)

    def __init__(self, name: str) -> None:
        """Take the name as `logging.getLogger` does."""
        self._logger = logging.getLogger(name)

    def debug(self, event: str, /, **members: object) -> None:
        """Say what only somebody in search of a fault wants to know."""
        self._write(logging.DEBUG, event, members)

    def info(self, event: str, /, **members: object) -> None:
        """Say what goes on."""
        self._write(logging.INFO, event, members)

    def warning(self, event: str, /, **members: object) -> None:
        """Say what somebody may want to change."""
        self._write(logging.WARNING, event, members)

    def error(self, event: str, /, **members: object) -> None:
        """Say what went wrong; `exc_info` may be an exception."""
        self._write(logging.ERROR, event, members)

    def exception(self, event: str, /, **members: object) -> None:
        """Say what went wrong, with the exception that is being handled."""
        self._write(logging.ERROR, event, {"exc_info": True} | members)

    def critical(self, event: str, /, **members: object) -> None:
        """Say why the process cannot go on; `exc_info` may be an exception."""
        self._write(logging.CRITICAL, event, members)

    def _write(self, level: int, event: str, members: dict[str, object]) -> None:
        exc_info = members.pop("exc_info", None)
        error = exc_info if isinstance(exc_info, BaseException) else bool(exc_info)
        self._logger.log(level, event, exc_info=error, extra={MEMBERS: members})
