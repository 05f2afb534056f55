"""Builds KEDA's operator and metrics adapter from the module that `hack/controlplane/keda` pins.

The scalers of other products are left out: with them, the build takes several times as long. The directory of
a build is named by the module's checksum and by the scalers that are left: a change of either builds again.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

from hack.controlplane.build import find_go
from hack.controlplane.cache import cache_directory, hold_lock
from hack.controlplane.errors import BuildFailedError
from hack.controlplane.modules import GoModule
from hack.controlplane.progress import ProgressLine

MODULE: Final = "github.com/kedacore/keda/v2"
PROGRAMS: Final = ("operator", "adapter")

_PINS: Final = GoModule(
    folder=Path(__file__).parents[1] / "controlplane" / "keda", binaries=(), linker_flags="", usual_minutes=4
)
_KEPT: Final = ("prometheus", "metrics_api", "external", "cpu_memory")
"""Scalers that are built: those that can read a decision, and those that KEDA's own code refers to."""

_SHARED: Final = 'package scalers\n\nconst externalMetricType = "External"\n'
"""A name that the kept scalers use and a removed one declares."""

_CASE: Final = re.compile(
    r"^\tcase [^\n]*:\n(?:\t\t//[^\n]*\n)*\t\treturn scalers\.(New\w+)\([^\n]*\n", re.MULTILINE
)
"""A case of the switch that makes the scaler of a trigger, with the name of its constructor."""


def provide_keda(progress: ProgressLine) -> Path:
    """Return the directory with `operator`, `adapter` and the manifests in `config`; build it if needed.

    Raises ToolchainMissingError or BuildFailedError.
    """
    digest = hashlib.sha256((_PINS.folder / "go.sum").read_bytes())
    digest.update(repr((_KEPT, _SHARED, PROGRAMS)).encode())
    directory = cache_directory() / "bin" / f"keda-{platform.machine()}-{digest.hexdigest()[:12]}"
    with hold_lock(directory.with_name(f"{directory.name}.lock")):
        if not directory.exists():
            progress.say(f"building KEDA (once; about {_PINS.usual_minutes} min on two cores)")
            _build(directory)
    return directory


def _build(directory: Path) -> None:
    go = find_go(_PINS)
    directory.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=directory.parent, prefix="partial-keda-") as partial:
        source, built = Path(partial, "source"), Path(partial, "built")
        shutil.copytree(_download(go), source, copy_function=shutil.copyfile)
        for folder in (source, *filter(Path.is_dir, source.rglob("*"))):
            folder.chmod(0o755)  # those of the module cache are read-only
        _leave_out_scalers(source)
        _run(
            [str(go), "build", "-trimpath", "-ldflags", "-s -w", "-o", f"{built}/"]
            + [f"./cmd/{name}" for name in PROGRAMS],
            source,
        )
        shutil.copytree(source / "config", built / "config")
        built.replace(directory)


def _download(go: Path) -> Path:
    """Return the directory of the module's source, which is verified by its checksum."""
    loaded = json.loads(_run([str(go), "mod", "download", "-json", MODULE], _PINS.folder))
    return Path(loaded["Dir"])


def _leave_out_scalers(source: Path) -> None:
    scalers = source / "pkg" / "scalers"
    kept = {scalers / "scaler.go", *(scalers / f"{name}_scaler.go" for name in _KEPT)}
    for file in set(scalers.glob("*.go")) - kept:
        file.unlink()
    (scalers / "shared.go").write_text(_SHARED)
    known = {name for file in kept for name in re.findall(r"^func (New\w+)", file.read_text(), re.MULTILINE)}
    builder = source / "pkg" / "scaling" / "scalers_builder.go"
    builder.write_text(
        _CASE.sub(lambda case: case[0] if case[1] in known else "", builder.read_text(encoding="utf-8"))
    )


def _run(command: list[str], directory: Path) -> str:
    environment = os.environ | {"CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly -buildvcs=false"}
    finished = subprocess.run(
        command, cwd=directory, env=environment, capture_output=True, text=True, check=False
    )
    if finished.returncode != 0:
        last = "\n".join(f"{finished.stdout}\n{finished.stderr}".splitlines()[-30:])
        raise BuildFailedError(f"{' '.join(command[:3])} of KEDA failed; its last lines:\n{last}")
    return finished.stdout
