"""The cache directory of built programs and running instances, with file locks.

It is outside the source tree.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path


def cache_directory() -> Path:
    """Return `$STOWPLAN_CACHE`, `$XDG_CACHE_HOME/stowplan` or `~/.cache/stowplan`; it may not exist."""
    if explicit := os.environ.get("STOWPLAN_CACHE"):
        return Path(explicit).absolute()
    if base := os.environ.get("XDG_CACHE_HOME"):
        return Path(base).absolute() / "stowplan"
    return Path.home() / ".cache" / "stowplan"


def try_lock(path: Path) -> int | None:
    """Take the lock without waiting; return the open descriptor, or None if another process holds it.

    The lock is released when the descriptor is closed; child processes don't inherit it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    return descriptor


@contextlib.contextmanager
def hold_lock(path: Path, *, on_wait: Callable[[], None] | None = None) -> Iterator[None]:
    """Hold the lock during a block; call `on_wait` once if another process holds it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as stream:
        try:
            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if on_wait is not None:
                on_wait()
            fcntl.flock(stream, fcntl.LOCK_EX)
        yield


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
