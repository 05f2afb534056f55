"""Build what the tests with a control plane need and this machine lacks.

It runs before these tests: a build of some minutes would take the CPU from those that run beside it.
"""

from __future__ import annotations

import os
import shutil
import sys

from hack.controlplane.binaries import provide_binaries, provide_module
from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.foreign import Definition, definition_file
from hack.controlplane.progress import ProgressLine
from hack.kind.steps import KIND
from hack.packaging.programs import HELM, KUBECONFORM
from hack.realnode.prerequisites import install
from support.chromium import CHROMIUM


def provide() -> None:
    """Provide all programs and foreign definitions; raises ToolchainMissingError or BuildFailedError."""
    progress = ProgressLine()
    provide_binaries(progress, prometheus=True)
    for module in (HELM, KUBECONFORM, KIND):
        provide_module(module, progress)
    definition_file(next(iter(Definition)))
    if shutil.which(CHROMIUM) is None and os.geteuid() == 0 and shutil.which("apt-get"):
        install([CHROMIUM], progress)


if __name__ == "__main__":
    try:
        provide()
    except ControlPlaneError as error:
        sys.exit(str(error))
