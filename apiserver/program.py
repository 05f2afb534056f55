"""What the command was called: `stowplan`, or `kubectl stowplan` where kubectl found it as a plugin."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

_PLUGIN: Final = "kubectl-"


def program(verb: str = "") -> str:
    """Return the words that a person typed before the options of a verb."""
    called = "kubectl stowplan" if Path(sys.argv[0]).name.startswith(_PLUGIN) else "stowplan"
    return f"{called} {verb}" if verb else called
