"""`python -m hack.demo`: watch the real HorizontalPodAutoscaler scale simulated engines by our decisions."""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from pathlib import Path

import msgspec
from rich.console import Console

from hack.controlplane import ControlPlane, ControlPlaneError
from hack.controlplane.nodes import create_nodes
from hack.demo import scenario
from hack.demo.performance import BROKEN, PerformanceOptions, perform
from hack.demo.summary import print_cause
from hack.installation import Installation
from hack.installation.installation import COMPONENTS
from hack.installation.models import start_models


def main(arguments: list[str]) -> int:
    """Run the demo; return 0 if everything was observed that should be shown, and 1 if something was not.

    The code is 3 if the demo itself failed, and 130 if it was interrupted.
    """
    options = PerformanceOptions(**vars(_parser().parse_args(arguments)))
    try:
        return _run(options)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)  # with the last lines of a log
        return BROKEN
    except Exception as error:  # noqa: BLE001 (one line tells a user more than a traceback)
        print_cause(Console(stderr=True), error)
        return BROKEN
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.demo", description=__doc__)
    parser.add_argument(
        "--keep", action="store_true", help="keep everything running at the end, until Ctrl-C"
    )
    parser.add_argument("--plain", action="store_true", help="print plain lines, even on a terminal")
    parser.add_argument(
        "--speed",
        type=float,
        default=1.0,
        metavar="X",
        help="pace of load and engines; what is checked holds at 1",
    )
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=COMPONENTS,
        help="stop this process before the load starts and do not restart it: the demo must then fail",
    )
    parser.add_argument("--picture", type=Path, metavar="SVG", help="save a picture of the screen")
    return parser


def _run(options: PerformanceOptions) -> int:
    began, console = time.monotonic(), Console()
    with ControlPlane() as control_plane:
        settings = {
            "apiserver": {"annotated": True},
            "controller": {
                "annotated": True,
                "planning": msgspec.to_builtins(scenario.PLANNING),
                "engines": {"podNetworks": [control_plane.pod_cidr]},
            },
        }
        with Installation(control_plane, settings=settings, components=("annotated",)) as installation:
            create_nodes(control_plane, [*scenario.nodes(), *scenario.model_nodes()])
            models = start_models(control_plane)
            console.print(f"Stowplan is installed and runs after {time.monotonic() - began:.0f} s")
            try:
                return asyncio.run(perform(control_plane, installation, console=console, options=options))
            finally:
                models.stop()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
