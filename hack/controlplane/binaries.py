"""Finds the programs of the control plane on this machine, and builds the missing ones.

The directory `$KUBEBUILDER_ASSETS`, `PATH` and the cache are searched in this order. A program from the first
two is used if it has the minor version that `go.mod` pins.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from hack.controlplane.build import build
from hack.controlplane.cache import cache_directory, hold_lock
from hack.controlplane.modules import KWOK, PROMETHEUS, Binary, GoModule, chosen_kubernetes
from hack.controlplane.progress import ProgressLine

_VERSION_SECONDS = 10.0


def provide_binaries(progress: ProgressLine, *, prometheus: bool = False) -> dict[str, Path]:
    """Return every program by name, building those that are missing.

    Raises ToolchainMissingError or BuildFailedError.
    """
    modules = (chosen_kubernetes(os.environ), KWOK, *((PROMETHEUS,) if prometheus else ()))
    provided: dict[str, Path] = {}
    for module in modules:
        provided |= provide_module(module, progress)
    return provided


def find_binaries(module: GoModule, environment: Mapping[str, str]) -> dict[str, Path]:
    """Return the programs of a module that are already on this machine."""
    paths = {}
    for binary in module.binaries:
        path = _installed_program(binary, module.version(binary), environment) or _cached_program(
            binary, module
        )
        if path is not None:
            paths[binary.name] = path
    return paths


def built_directory(module: GoModule) -> Path:
    """Return the cache directory for the built programs of a module."""
    return cache_directory() / "bin" / module.cache_key()


def provide_module(module: GoModule, progress: ProgressLine) -> dict[str, Path]:
    """Return the programs of one module, building those that are missing; raises as above."""
    paths = find_binaries(module, os.environ)
    if len(paths) == len(module.binaries):
        return paths
    directory = built_directory(module)
    with hold_lock(
        directory.with_name(f"{directory.name}.lock"),
        on_wait=lambda: progress.say(f"waiting for another build of {module.folder.name} to finish"),
    ):
        paths = find_binaries(module, os.environ)  # another process may have built them meanwhile
        missing = tuple(binary for binary in module.binaries if binary.name not in paths)
        if missing:
            build(module, missing, directory=directory, progress=progress)
    return paths | {binary.name: directory / binary.name for binary in missing}


def _cached_program(binary: Binary, module: GoModule) -> Path | None:
    path = built_directory(module) / binary.name
    return path if path.is_file() else None


def _installed_program(binary: Binary, release: str, environment: Mapping[str, str]) -> Path | None:
    places = (environment.get("KUBEBUILDER_ASSETS"), environment.get("PATH"))
    for place in filter(None, places):
        path = shutil.which(binary.name, path=place)
        if path is not None and same_minor(_printed_version(Path(path), binary), release):
            return Path(path)
    return None


def same_minor(version: str | None, release: str) -> bool:
    """Tell whether two versions such as `1.36.0` and `1.36.3` have the same minor version."""
    return version is not None and version.split(".")[:2] == release.split(".")[:2]


def _printed_version(path: Path, binary: Binary) -> str | None:
    try:
        finished = subprocess.run(
            [path, *binary.version_arguments],
            capture_output=True,
            text=True,
            check=False,
            timeout=_VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None  # it does not run on this machine, so it counts as missing
    match = re.search(r"\bv?(\d+\.\d+\.\d+)", finished.stdout)
    return match.group(1) if match else None
