"""`python -m hack.bench.placement`: quality and cost of placements, ours beside others'."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.placement import moving, planning
from hack.bench.placement.catalogue import FAMILIES, SIZES, chosen
from hack.bench.placement.engines import names
from hack.bench.placement.measurement import (
    JOINT,
    PlacementMeasurement,
    PlacementSettings,
    measure,
    write_charts,
)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--families", nargs="+", default=[], metavar="F", help="such as F4 or F14-ties [all]")
    sizes = " ".join(map(str, SIZES))
    parser.add_argument("--sizes", nargs="+", type=int, default=SIZES, metavar="N", help=f"models [{sizes}]")
    parser.add_argument(
        "--nodes", nargs="+", type=int, default=moving.NODES, metavar="N", help="of F8 and F10 [10 to 20000]"
    )
    add_count(parser, "--seeds", default=1, text="fleets of each family and size")
    parser.add_argument("--engines", nargs="+", default=[], metavar="E", help="of those compared [all]")
    add_count(parser, "--highs-models", default=2000, text="most models that HiGHS is tried with")
    add_count(parser, "--textbook-models", default=100, text="most models for our textbook model")
    parser.add_argument("--plots", type=Path, metavar="FOLDER", help="draw time and cost as SVG")


def _measure(options: argparse.Namespace, progress: Callable[[str], None]) -> PlacementMeasurement:
    measured = measure(_settings(options), progress=progress)
    if options.plots is not None:
        write_charts(measured, options.plots)
    return measured


def _settings(options: argparse.Namespace) -> PlacementSettings:
    """Return what the options choose; raises NothingChosenError for names that there are not."""
    there, known = names(), (*FAMILIES, *moving.FAMILIES, *planning.FAMILIES, JOINT)
    try:
        families = chosen(options.families, known)
    except KeyError as error:
        raise NothingChosenError(f"--families: there is no {error}; there are {', '.join(known)}") from error
    if unknown := set(options.engines) - set(there):
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--engines: there is no {wrong}; there are {', '.join(there)}")
    return PlacementSettings(
        rounds=options.rounds,
        seconds=options.seconds,
        families=tuple(name for name in families if name in FAMILIES),
        fragmented=tuple(name for name in families if name in moving.FAMILIES),
        plans=tuple(name for name in families if name in planning.FAMILIES),
        is_joint=JOINT in families,
        nodes=tuple(options.nodes),
        sizes=tuple(options.sizes),
        seeds=tuple(range(options.seeds)),
        engines=tuple(options.engines or there),
        most_highs=options.highs_models,
        most_textbook=options.textbook_models,
    )


_COMMAND: Final = Command(
    name="placement", description=__doc__, seconds=20.0, add_options=_add_options, measure=_measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
