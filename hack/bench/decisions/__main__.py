"""`python -m hack.bench.decisions`: compare cost and missed requests in a closed loop with other policies."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.decisions.measuring import DecisionSettings, measure
from hack.bench.decisions.rows import rows
from hack.bench.decisions.sweeping import FULL, QUICK


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--rows", default="", metavar="NAME,...", help=f"rows to run [all: {', '.join(rows())}]"
    )
    parser.add_argument("--quick", action="store_true", help="run one seed, and few settings of rivals")
    cores = len(os.sched_getaffinity(0))
    add_count(parser, "--processes", default=cores, text="concurrent processes")


def _settings(options: argparse.Namespace) -> DecisionSettings:
    sweep = QUICK if options.quick else FULL
    return DecisionSettings(rows=chosen(options.rows), sweep=sweep, processes=options.processes)


def chosen(text: str) -> tuple[str, ...]:
    """Return the named rows in the order of the table; all if none is named.

    Raises NothingChosenError for unknown names.
    """
    named = {name.strip() for name in text.split(",") if name.strip()}
    if unknown := named - rows().keys():
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--rows: unknown: {wrong}; known: {', '.join(rows())}")
    return tuple(name for name in rows() if not named or name in named)


_COMMAND: Final = Command(
    name="decisions", description=__doc__, add_options=_add_options, settings=_settings, measure=measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
