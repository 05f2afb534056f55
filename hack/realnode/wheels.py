"""The wheels for the image, downloaded on this machine by the lock files.

The build uses no package index, so this machine's pip configuration and environment stay outside of it.
Hashes are checked twice: here and by the Dockerfile's own steps.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.lock import hold_lock
from hack.controlplane.progress import ProgressLine

_PLATFORMS: Final = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")
"""Platform tags that the base supports, newest first."""


def provide_wheels(directory: Path, locks: tuple[Path, ...], progress: ProgressLine) -> Path:
    """Return a directory with the wheels of some lock files, downloading them if necessary."""
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in locks)).hexdigest()[:12]
    folder = directory / f"wheels-{digest}"
    with hold_lock(directory / f"{folder.name}.lock"):
        if not folder.exists():
            progress.say("fetching wheels by the lock files (once; some seconds)")
            with tempfile.TemporaryDirectory(dir=directory, prefix="partial-") as partial:
                for lock in locks:
                    _fetch(lock, Path(partial) / folder.name)
                (Path(partial) / folder.name).replace(folder)
    return folder


def _fetch(lock: Path, folder: Path) -> None:
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--require-hashes", "--only-binary=:all:"]
    platforms = [f"--platform={name}" for name in _PLATFORMS]
    finished = subprocess.run(
        [*command, "--python-version=3.11", *platforms, f"--dest={folder}", f"--requirement={lock}"],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise ControlPlaneError(f"the wheels of {lock.name} could not be had:\n{finished.stderr[-2000:]}")
