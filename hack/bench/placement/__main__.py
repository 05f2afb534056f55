"""`python -m hack.bench.placement`: quality and CPU cost of placements, compared with other engines.

Fleets of up to 100 models are placed at most three times, of up to 500 twice, larger ones once. --seconds is
the wall-clock limit of each solve. With --json, the file always contains the results so far.
"""

from __future__ import annotations

import argparse
import sys
from typing import Final

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.placement import moving, planning, race, repeating
from hack.bench.placement.engines import COMPARED
from hack.bench.placement.measuring import JOINT, measure
from hack.bench.placement.schedule import PlacementSettings
from hack.fleets.catalogue import AT_LARGEST, FAMILIES, LARGEST, SIZES, chosen

_KNOWN: Final = (*FAMILIES, *moving.FAMILIES, *planning.FAMILIES, *repeating.FAMILIES, JOINT, race.FAMILY)


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--families", nargs="+", default=[], metavar="F", help="families, such as F4 or F14-ties [all]"
    )
    most = ", ".join(name.partition("-")[0] for name in AT_LARGEST)
    sizes = f"numbers of models [{' '.join(map(str, SIZES))}; the last only for {most} and whole plans]"
    parser.add_argument("--sizes", nargs="+", type=int, default=[], metavar="N", help=sizes)
    parser.add_argument(
        "--nodes",
        nargs="+",
        type=int,
        default=moving.NODES,
        metavar="N",
        help="numbers of nodes of F8 and F10 [10 to 20000]",
    )
    add_count(parser, "--seeds", default=1, text="fleets of each family and size")
    parser.add_argument("--engines", nargs="+", default=[], metavar="E", help="engines to compare [all]")
    add_count(parser, "--highs-models", default=100, text="largest fleet that HiGHS places")
    add_count(parser, "--highs-seconds", default=600, text="limit of HiGHS in the race, in seconds of CPU")
    many = ", ".join(f"{count} with {size}" for size, count in repeating.REPEATS.items())
    text = f"repeated plans in each order, which must be identical; without it {many} models"
    add_count(parser, "--repeats", default=0, text=text)


def _settings(options: argparse.Namespace) -> PlacementSettings:
    """Return the settings that the options select. Raises NothingChosenError for unknown names."""
    families = _families(options)
    if unknown := set(options.engines) - set(COMPARED):
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--engines: unknown: {wrong}; known: {', '.join(COMPARED)}")
    return PlacementSettings(
        rounds=options.rounds,
        seconds=options.seconds,
        families=tuple(name for name in families if name in FAMILIES),
        fragmented=tuple(name for name in families if name in moving.FAMILIES),
        plans=tuple(name for name in families if name in planning.FAMILIES),
        again=tuple(name for name in families if name in repeating.FAMILIES),
        repeats=options.repeats,
        is_joint=JOINT in families,
        is_raced=race.FAMILY in families,
        highs_seconds=float(options.highs_seconds),
        nodes=tuple(options.nodes),
        sizes=tuple(options.sizes or SIZES),
        largest=tuple(FAMILIES) if LARGEST in options.sizes else AT_LARGEST,
        seeds=tuple(range(options.seeds)),
        engines=tuple(options.engines or COMPARED),
        most_highs=options.highs_models,
    )


def _families(options: argparse.Namespace) -> list[str]:
    try:
        return chosen(options.families, _KNOWN)
    except KeyError as error:
        known = ", ".join(_KNOWN)
        raise NothingChosenError(f"--families: unknown: {error}; known: {known}") from error


_COMMAND: Final = Command(
    name="placement",
    description=__doc__,
    seconds=20.0,
    add_options=_add_options,
    settings=_settings,
    measure=measure,
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
