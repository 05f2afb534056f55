"""`python -m hack.bench.decisions`: compare cost and missed requests in a closed loop with other policies."""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.decisions.measuring import DecisionSettings, measure
from hack.decisions.rows import rows

ENGINES: Final = "engines"
"""The name of the table of engines."""


def _add_options(parser: argparse.ArgumentParser) -> None:
    names = f"{', '.join(rows())}, {ENGINES}"
    parser.add_argument("--rows", default="", metavar="NAME,...", help=f"rows to run [all: {names}]")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run one seed; unless rows are selected, without variations and engines",
    )
    parser.add_argument(
        "--rivals", action="store_true", help="only measure the rivals of the rows that are not in the file"
    )
    cores = len(os.sched_getaffinity(0))
    add_count(parser, "--processes", default=cores, text="concurrent processes")


def _settings(options: argparse.Namespace) -> DecisionSettings:
    names = choose_rows(options.rows)
    is_short = options.quick and not options.rows
    return DecisionSettings(
        rows=tuple(name for name in names if name in rows() and not (is_short and rows()[name].is_variation)),
        engines=ENGINES in names and not is_short,
        is_quick=options.quick,
        rivals=options.rivals,
        processes=options.processes,
    )


def choose_rows(text: str) -> tuple[str, ...]:
    """Return the named rows in the order of the table; all if none is named.

    Raises NothingChosenError for unknown names.
    """
    named = {name.strip() for name in text.split(",") if name.strip()}
    known = (*rows(), ENGINES)
    if unknown := named.difference(known):
        wrong = ", ".join(sorted(unknown))
        raise NothingChosenError(f"--rows: unknown: {wrong}; known: {', '.join(known)}")
    return tuple(name for name in known if not named or name in named)


_COMMAND: Final = Command(
    name="decisions", description=__doc__, add_options=_add_options, settings=_settings, measure=measure
)

if __name__ == "__main__":
    sys.exit(main(_COMMAND, sys.argv[1:]))
