"""`python -m hack.bench.conversion`: CPU time of conversion, ours beside a straightforward server's."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Final

from hack.bench.command import Command, add_count, main
from hack.bench.conversion.cases import cases
from hack.bench.conversion.measurement import (
    ConversionMeasurement,
    ConversionSettings,
    measure,
    with_control_plane,
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    add_count(parser, "--calls", default=200, text="reads and writes of each sort")
    add_count(parser, "--stored", default=5000, text="objects stored in the old version")
    add_count(parser, "--restarts", default=2, text="of the API server, with each converter")
    parser.add_argument("--without-control-plane", action="store_true", help="leave out the API server")


def _measure(options: argparse.Namespace, progress: Callable[[str], None]) -> ConversionMeasurement:
    measured = measure(cases(), _settings(options), progress=progress)
    return with_control_plane(measured, progress=progress)


def _settings(options: argparse.Namespace) -> ConversionSettings:
    return ConversionSettings(
        rounds=options.rounds,
        seconds=options.seconds,
        calls=0 if options.without_control_plane else options.calls,
        stored=options.stored,
        restarts=options.restarts,
    )


_COMMAND: Final = Command(
    name="conversion", description=__doc__, seconds=0.3, add_options=_add_options, measure=_measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
