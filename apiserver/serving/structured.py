"""Forwarding of structlog events to the loggers of this package."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import structlog

from apiserver.serving.logger import EventLogger

if TYPE_CHECKING:
    from structlog.typing import EventDict, WrappedLogger


def forward_structlog() -> None:
    """Send structlog's events to the output of `configure_logging`, which must have been called before."""
    structlog.configure(
        processors=[structlog.contextvars.merge_contextvars, _as_call],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLogger().level),
        logger_factory=lambda *names: EventLogger(str(names[0]) if names else ""),
        cache_logger_on_first_use=False,  # logging is rare, and a cached logger could not be reconfigured
    )


def _as_call(
    _logger: WrappedLogger, _method: str, event: EventDict
) -> tuple[tuple[object, ...], dict[str, object]]:
    """Return the arguments for the logger method of the same name."""
    sentence = event.pop("event", "")
    return (sentence,), {str(name): value for name, value in event.items()}
