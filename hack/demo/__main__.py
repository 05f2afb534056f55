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
from hack.demo.performance import Options, perform
from hack.installation import Installation
from hack.installation.installation import COMPONENTS
from hack.installation.models import start_models


def main(arguments: list[str]) -> int:
    """Run the demo; return 0 only if everything was observed that should be shown."""
    options = Options(**vars(_parser().parse_args(arguments)))
    try:
        return _run(options)
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
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


def _run(options: Options) -> int:
    began, console = time.monotonic(), Console()
    with ControlPlane() as control_plane:
        settings = {
            "controller": {
                "planning": msgspec.to_builtins(scenario.PLANNING),
                "engines": {"podNetworks": [control_plane.pod_cidr]},
            }
        }
        with Installation(control_plane, settings=settings) as installation:
            create_nodes(control_plane, [*scenario.nodes(), *scenario.model_nodes()])
            models = start_models(control_plane)
            console.print(f"Stowplan is installed and runs after {time.monotonic() - began:.0f} s")
            try:
                return asyncio.run(perform(control_plane, installation, console=console, options=options))
            except ExceptionGroup as group:
                raise _first(group) from group
            finally:
                models.stop()


def _first(group: ExceptionGroup[Exception]) -> Exception:
    """Return the error that ended a group of tasks; the others were only cancelled because of it."""
    error = group.exceptions[0]
    return _first(error) if isinstance(error, ExceptionGroup) else error


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
