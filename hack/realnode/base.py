"""The base of the image, built from Debian packages, because no image registry is used.

It replaces the image in the Dockerfile's FROM: the same Debian release, with Debian's own Python of the same
minor version as `python`. The public base has a Python built from source in /usr/local instead.
"""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path
from typing import Final

from hack.controlplane.lock import hold_lock
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
