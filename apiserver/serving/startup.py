"""The start of a server subcommand, from its arguments to a running process, and its options."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from apiserver.log import configure_logging
from apiserver.serving.config import ConfigurationError, ServingConfig, parse


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """Limits on what clients may hold, and on the duration of a shutdown."""

    keep_alive_seconds: float = 120.0
    """How long an idle connection stays open. API servers close theirs after 90 s, so they close first and
    never send a request on a connection that is being closed."""
    unfinished_request_seconds: float = 10.0
    """How long a request may take to arrive completely."""
    connections: int = 1024
    """The maximum number of connections of one listener."""
    finish_seconds: float = 20.0
    """How long requests in flight, and then background work, may take to end."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ServerOptions:
    """The listeners of a process and its drain period. A port of 0 takes any free one; None opens none."""

    bind_address: str | None = None
    """None means all addresses."""
    port: int | None = None
    """The HTTPS port of the application."""
    metrics_port: int | None = None
    health_port: int | None = None
    certificate_path: Path | None = None
    key_path: Path | None = None
    drain_seconds: float = 5.0
    """How long clients have to notice the shutdown; not used without an application."""
    limits: Limits = field(default_factory=Limits)


T = TypeVar("T")

_WRONG_CONFIGURATION: Final = 2


def run_verb(
    declared: type[T],
    arguments: Sequence[str],
    *,
    verb: str,
    description: str,
    serving: Callable[[T], ServingConfig],
    start: Callable[[T], int],
) -> int:
    """Parse the configuration, set up logging, and run; return the exit code.

    Every problem of an invalid configuration is printed to standard error, with exit code 2.
    """
    try:
        config = parse(declared, program=f"stowplan {verb}", description=description, arguments=arguments)
        logs = serving(config)
        configure_logging(level=logs.log_level, format=None if logs.log_format == "auto" else logs.log_format)
        return start(config)
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"stowplan {verb}: {problem}", file=sys.stderr)  # noqa: T201 (before logging is set up)
        return _WRONG_CONFIGURATION


def server_options(serving: ServingConfig, *, has_application: bool) -> ServerOptions:
    """Return the listeners of a process from its configuration."""
    directory = Path(serving.certificate_directory)
    return ServerOptions(
        bind_address=serving.bind_address or None,
        port=serving.port if has_application else None,
        metrics_port=serving.metrics_port,
        health_port=serving.health_port,
        certificate_path=directory / "tls.crt" if has_application else None,
        key_path=directory / "tls.key" if has_application else None,
        drain_seconds=float(serving.drain_seconds),
    )
