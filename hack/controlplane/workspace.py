"""The directory of one running instance: keys, kubeconfigs, logs and data."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from hack.controlplane.cache import cache_directory
from hack.controlplane.lock import hold_lock, try_lock


class Workspace:
    """A new directory, locked while this process lives; later instances remove those of killed ones."""

    def __init__(self) -> None:
        self._base = cache_directory() / "run"
        with hold_lock(self._base / ".lock"):
            _remove_abandoned(self._base)
            self.directory = Path(tempfile.mkdtemp(dir=self._base))
            self._lock = try_lock(_lock_of(self.directory))

    def remove(self) -> None:
        """Delete the directory and its content."""
        with hold_lock(self._base / ".lock"):
            shutil.rmtree(self.directory)
            self.abandon()

    def abandon(self) -> None:
        """Keep the directory for inspection; the next instance that starts removes it."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock_of(directory: Path) -> Path:
    return directory / ".lock"


def _remove_abandoned(base: Path) -> None:
    """Remove the directories of instances that ended without cleanup, for example if they were killed."""
    for directory in base.iterdir():
        if not directory.is_dir():
            continue
        lock = try_lock(_lock_of(directory))
        if lock is not None:
            shutil.rmtree(directory)
            os.close(lock)
