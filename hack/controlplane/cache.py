"""Where built binaries and the files of running copies are kept, outside the source tree."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Name `$STOWPLAN_CACHE`, else `$XDG_CACHE_HOME/stowplan`, else `~/.cache/stowplan`; it may not exist."""
    if explicit := os.environ.get("STOWPLAN_CACHE"):
        return Path(explicit).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "stowplan"
    return Path.home() / ".cache" / "stowplan"
