"""`python -m hack.packaging [--image REFERENCE]`: writes the files of a release into build/dist."""

from __future__ import annotations

import argparse
import os
import shutil
import sys

from hack.controlplane.binaries import provide_module
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.packaging.chart import Sources, chart_files
from hack.packaging.programs import KUBECTL
from hack.packaging.release import release_files
from hack.realnode.image import ROOT, shipped_reference


def main(arguments: list[str]) -> int:
    """Write all files, with the time in SOURCE_DATE_EPOCH; return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.packaging", description=__doc__)
    parser.add_argument(
        "--image", default="", help=f"reference of the pushed image, instead of {shipped_reference()}"
    )
    options = parser.parse_args(arguments)
    target = ROOT / "build" / "dist"
    try:
        kubectl = provide_module(KUBECTL, ProgressLine())["kubectl"]
        built_time = int(os.environ.get("SOURCE_DATE_EPOCH") or 0)
        chart = chart_files(Sources(kubectl), image=options.image)
        files = release_files(kubectl, chart=chart, image=options.image, built_time=built_time)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for name, content in files.items():
        (target / name).write_bytes(content)
        print(f"wrote {target.relative_to(ROOT) / name}, {len(content)} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
