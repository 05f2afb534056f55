"""The base of the image, built from Debian packages, because no image registry is used; and its wheels.

It replaces the image in the Dockerfile's FROM: the same Debian release, with Debian's own Python of the same
minor version as `python`. The public base has a Python built from source in /usr/local instead.

The build uses no package index, so this machine's pip configuration and environment stay outside of it.
Wheels are downloaded by the lock files; hashes are checked twice: here and by the Dockerfile's own steps.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

from hack.controlplane.cache import hold_lock
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.realnode.prerequisites import SUITE, PrerequisitesMissingError

_VARIANT: Final = "minbase"
"""Essential packages and apt, as in the public base: wheels use the C++ library that apt needs."""

_PACKAGES: Final = ("ca-certificates", "python3.11", "python3-venv", "python-is-python3")
_UNNEEDED: Final = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")


def provide_base(directory: Path, progress: ProgressLine) -> Path:
    """Return an archive of the root file system, creating it if necessary."""
    digest = hashlib.sha256("\n".join((SUITE, _VARIANT, *_PACKAGES, *_UNNEEDED)).encode()).hexdigest()[:12]
    archive = directory / f"base-{digest}.tar"
    with hold_lock(archive.with_suffix(".lock")):
        if not archive.exists():
            progress.say("building the base image from Debian packages (once; about a minute)")
            _make(archive)
    return archive


def _make(archive: Path) -> None:
    partial = archive.with_name(f"partial-{archive.name}")
    options = [
        f"--variant={_VARIANT}",
        f"--include={','.join(_PACKAGES)}",
        *(f"--dpkgopt=path-exclude={pattern}" for pattern in _UNNEEDED),
        *(f"--aptopt={setting}" for setting in _apt_settings()),
    ]
    # Use this machine's own package sources; no other source is configured here.
    sources = [str(path) for path in _source_files()]
    finished = subprocess.run(
        ["mmdebstrap", "--quiet", *options, SUITE, str(partial), *sources],
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise PrerequisitesMissingError(
            f"mmdebstrap failed to build the base image:\n{finished.stderr[-2000:]}"
        )
    partial.replace(archive)


def _source_files() -> list[Path]:
    folder = Path("/etc/apt")
    listed = [folder / "sources.list", *sorted(folder.glob("sources.list.d/debian*.sources"))]
    return [path for path in listed if path.exists()]


def _apt_settings() -> list[str]:
    """Return this machine's settings for package sources, such as a proxy or limits on their age."""
    finished = subprocess.run(
        ["apt-config", "dump", "--format", '%f "%v";%n', "Acquire"],
        capture_output=True,
        text=True,
        check=True,
    )
    return [line for line in finished.stdout.splitlines() if not line.endswith('"";')]


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
