"""Sends what is logged through structlog the way of every other line."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog

from apiserver.serving.logger import EventLogger

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger


def forward_structlog() -> None:
    """Write structlog's events as `configure_logging` has it, which must have been called before."""
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _as_call],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLogger().level),
        logger_factory=lambda *names: EventLogger(str(names[0]) if names else ""),
        cache_logger_on_first_use=False,  # we log rarely, and a cached logger could not be configured anew
    )


def _as_call(
    _logger: WrappedLogger, _method: str, event: EventDict
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments for the method of the same name."""
    sentence = event.pop("event", "")
    return (sentence,), {str(name): value for name, value in event.items()}
