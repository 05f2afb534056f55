"""`python -m hack.bench.admission`: CPU time of admission, ours beside a straightforward server's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from typing import Final

from hack.bench.admission.cases import Case, cases
from hack.bench.admission.measurement import (
    AdmissionMeasurement,
    AdmissionSettings,
    measure,
    with_api_server,
)
from hack.bench.command import Command, NothingChosenError, add_count, main


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--connections", default=16, text="busy at once")
    add_count(parser, "--calls", default=200, text="writes of each sort on the control plane")
    parser.add_argument(
        "--without-control-plane", action="store_true", help="leave out the API server's own metrics"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help='just the cases with this text: "model, create /mutate"'
    )


def _measure(options: argparse.Namespace, progress: Callable[[str], None]) -> AdmissionMeasurement:
    chosen = _chosen(options.only)
    measured = measure(chosen, _settings(options), progress=progress)
    return with_api_server(measured, chosen, progress=progress)


def _chosen(text: str) -> Sequence[Case]:
    chosen = [case for case in cases() if text.lower() in f"{case.name} /{case.verb}".lower()]
    if not chosen:
        raise NothingChosenError(f"no case has {text!r} in its name")
    return chosen


def _settings(options: argparse.Namespace) -> AdmissionSettings:
    return AdmissionSettings(
        rounds=options.rounds,
        seconds=options.seconds,
        connections=options.connections,
        calls=0 if options.without_control_plane else options.calls,
    )


_COMMAND: Final = Command(
    name="admission", description=__doc__, seconds=0.35, add_options=_add_options, measure=_measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
