"""`python -m hack.kind up|down`."""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from hack.controlplane.binaries import provide_module
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.kind.steps import ENGINES, KIND, Programs, down, up
from hack.packaging.programs import KUBECTL


def main(arguments: list[str]) -> int:
    """Print and run each command until one fails; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.kind", description="Stowplan on a cluster of kind.")
    parser.add_argument("verb", choices=("up", "down"))
    options = parser.parse_args(arguments)
    engine = next((name for name in ENGINES if shutil.which(name)), None)
    if engine is None:
        print(f"kind needs a container engine: install {' or '.join(ENGINES)}", file=sys.stderr)
        return 1
    try:
        commands = provide_module(KIND, ProgressLine()) | provide_module(KUBECTL, ProgressLine())
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    programs = Programs(kind=commands["kind"], kubectl=commands["kubectl"], engine=engine)
    environment = os.environ | {"KIND_EXPERIMENTAL_PROVIDER": engine}
    with tempfile.TemporaryDirectory() as folder:
        steps = up(programs, Path(folder) / "image.tar") if options.verb == "up" else down(programs)
        for command in steps:
            print(f"$ {shlex.join(command)}", flush=True)
            if code := subprocess.run(command, env=environment, check=False).returncode:
                return code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
