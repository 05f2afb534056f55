"""The start of a server subcommand, from its arguments to a running process."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeVar

from apiserver.log import configure_logging
from apiserver.serving.config import ConfigurationError, ServingConfig, parse
from apiserver.serving.options import ServerOptions

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
    gc.disable()  # until it serves: objects loaded until then stay for good
    try:
        config = parse(declared, program=f"stowplan {verb}", description=description, arguments=arguments)
        logs = serving(config)
        configure_logging(level=logs.log_level, format=None if logs.log_format == "auto" else logs.log_format)
        return start(config)
    except ConfigurationError as error:
        for problem in error.problems:
            print(f"stowplan {verb}: {problem}", file=sys.stderr)  # noqa: T201 (before logging is set up)
        return _WRONG_CONFIGURATION
    finally:
        gc.enable()


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
