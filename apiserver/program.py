"""What the command was called, and how a verb for people ends when nobody reads on."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

_PLUGIN: Final = "kubectl-"
_INTERRUPTED: Final = 130
"""As a shell says it of a process that SIGINT ended."""


def program(verb: str = "") -> str:
    """Return the words that a person typed before the options of a verb.

    `stowplan`, or `kubectl stowplan` where kubectl found it as a plugin.
    """
    called = "kubectl stowplan" if Path(sys.argv[0]).name.startswith(_PLUGIN) else "stowplan"
    return f"{called} {verb}" if verb else called


def exit_code(run: Callable[[], int], *, unread: int) -> int:
    """Return the exit code of a verb that prints; `unread` where whoever reads has seen enough."""
    try:
        return run()
    except BrokenPipeError:
        # What is left in the buffer must not fail once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return unread
    except KeyboardInterrupt:
        return _INTERRUPTED
