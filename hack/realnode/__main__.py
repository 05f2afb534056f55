"""`python -m hack.realnode [--optional] [MODULE ARGUMENT...]`: `python -m MODULE`, where a real node can be.

Without a module, it only builds the programs of such a node.
"""

from __future__ import annotations

import argparse
import sys

from hack.controlplane.errors import ControlPlaneError
from hack.controlplane.progress import ProgressLine
from hack.realnode.namespaces import cgroup_name, run_inside
from hack.realnode.prepared import NodePreparation, provide_programs
from hack.realnode.prerequisites import missing_packages, missing_requirements, require


def main(arguments: list[str]) -> int:
    """Prepare, then run the module, if any, in new namespaces; return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m hack.realnode", description=__doc__)
    parser.add_argument(
        "--optional", action="store_true", help="install nothing; report missing packages and exit with 0"
    )
    parser.add_argument("module", nargs="?")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args(arguments)
    if options.optional and (
        lacking := [*missing_requirements(), *map("the Debian package {}".format, missing_packages())]
    ):
        print(
            "The tests on a real node are skipped, because these packages are missing (`make e2e`"
            " installs them):"
        )
        print(*lacking, sep="\n")
        return 0
    try:
        if options.module is None:
            require(ProgressLine())
            provide_programs(ProgressLine())
            return 0
        prepared = NodePreparation.make(ProgressLine(), cgroup=cgroup_name())
        command = [sys.executable, "-m", options.module, *options.arguments]
        return run_inside(command, prepared.environment())
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
