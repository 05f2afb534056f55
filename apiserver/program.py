"""The name and version of the command, parsers of subcommands, and how they end: exit codes, no traceback."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PLUGIN: Final = "kubectl-"
_INTERRUPTED: Final = 130
"""The exit code of a process that SIGINT ended, as in a shell."""


class CannotRunError(Exception):
    """A process cannot run as configured. The message says why, so that it is logged without a traceback."""


def program(verb: str = "") -> str:
    """Return the words of the command line before the options of a subcommand.

    They begin with `stowplan`, or `kubectl stowplan` if kubectl runs it as a plugin.
    """
    called = "kubectl stowplan" if Path(sys.argv[0]).name.startswith(_PLUGIN) else "stowplan"
    return f"{called} {verb}" if verb else called


def command_parser(
    verb: str, description: str, *, epilog: str, usage: str | None = None
) -> argparse.ArgumentParser:
    """Return the parser of a subcommand, without its options. Options must not be abbreviated."""
    return argparse.ArgumentParser(
        allow_abbrev=False,
        prog=program(verb),
        description=description,
        usage=usage,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )


def version() -> str:
    """Return the version of the running package."""
    from importlib import metadata  # noqa: PLC0415 (imported on first use, to start faster)

    return metadata.version("stowplan")


def exit_code(run: Callable[[], int], *, unread: int) -> int:
    """Return the exit code of a subcommand that prints; `unread` if the reader closes the output early."""
    try:
        return run()
    except BrokenPipeError:
        # The remaining buffer must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return unread
    except KeyboardInterrupt:
        return _INTERRUPTED
