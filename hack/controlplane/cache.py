"""Directory of built programs and of running instances' files, outside the source tree."""

from __future__ import annotations

import os
from pathlib import Path


def cache_directory() -> Path:
    """Return `$STOWPLAN_CACHE`, `$XDG_CACHE_HOME/stowplan` or `~/.cache/stowplan`; it may not exist."""
    if explicit := os.environ.get("STOWPLAN_CACHE"):
        return Path(explicit).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "stowplan"
    return Path.home() / ".cache" / "stowplan"
