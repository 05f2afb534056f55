"""`python -m hack.controlplane up|down|status`: a control plane in the background, by name."""

from __future__ import annotations

import argparse
import sys

from hack.controlplane.background import Background
from hack.controlplane.binaries import provide_binaries
from hack.controlplane.errors import ControlPlaneError, NotRunningError
from hack.controlplane.progress import ProgressLine


def main(arguments: list[str]) -> int:
    """Run one command; return the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except ControlPlaneError as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.controlplane", description=__doc__)
    verbs = parser.add_subparsers(required=True, metavar="VERB")
    table = {
        "up": (_up, "start a control plane in the background and print how to use it"),
        "down": (_down, "stop it"),
        "status": (_status, "print whether it runs; exit code 1 if it does not"),
        "supervise": (_supervise, "run one in the foreground (what `up` starts)"),
    }
    for name, (run, description) in table.items():
        verb = verbs.add_parser(name, help=description, description=description)
        verb.set_defaults(run=run)
        verb.add_argument(
            "--name", default="default", help="name of the control plane (default: %(default)s)"
        )
        if name not in ("down", "status"):
            verb.add_argument("--prometheus", action="store_true", help="with Prometheus")
    return parser


def _up(options: argparse.Namespace) -> int:
    background = Background(options.name)
    if background.is_running():
        print(f"control plane {background.name!r} is running already")
    else:
        provide_binaries(ProgressLine(), prometheus=options.prometheus)
        background.start(prometheus=options.prometheus)
        print(f"control plane {background.name!r} runs at {background.state()['server']}")
    print(f"use it:   export KUBECONFIG={background.kubeconfig}")
    print(f"stop it:  python -m hack.controlplane down --name {background.name}")
    return 0


def _down(options: argparse.Namespace) -> int:
    background = Background(options.name)
    try:
        background.stop()
    except NotRunningError:
        print(f"control plane {background.name!r} is not running")
    else:
        print(f"control plane {background.name!r} is stopped")
    return 0


def _status(options: argparse.Namespace) -> int:
    background = Background(options.name)
    if not background.is_running():
        print(f"control plane {background.name!r} is not running")
        return 1
    print(f"control plane {background.name!r} is running")
    for key, value in background.state().items():
        print(f"  {key}: {value}")
    print(f"  kubeconfig: {background.kubeconfig}")
    return 0


def _supervise(options: argparse.Namespace) -> int:
    Background(options.name).supervise(prometheus=options.prometheus)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
