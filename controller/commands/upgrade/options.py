"""Command line options of subcommands that change a cluster step by step."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from apiserver.program import program
from controller.commands.upgrade.findings import ACCEPTABLE

DEFAULT_RATE: Final = 100.0
EXIT_CODES: Final = """
exit code: 0 done, planned, or nothing to do; 1 a check found a problem, or the
run stopped; 2 wrong usage, or no usable connection to a cluster
"""


def parser(
    verb: str, description: str, epilog: str, *, acceptable: Sequence[str] = ACCEPTABLE
) -> argparse.ArgumentParser:
    """Return a parser with the common options; `acceptable` are the checks for `--accept`."""
    made = argparse.ArgumentParser(
        allow_abbrev=False,
        prog=program(verb),
        description=description,
        epilog=epilog + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument(
        "--apply", action="store_true", help="execute the plan; without this option, only print it"
    )
    made.add_argument("--kubeconfig", type=Path, metavar="FILE", help="path to the kubeconfig file")
    made.add_argument("--context", metavar="NAME", help="name of the kubeconfig context to use")
    made.add_argument(
        "-o", "--output", choices=("text", "json"), default="text", help="output format (default: text)"
    )
    made.add_argument(
        "--accept",
        action="append",
        choices=acceptable,
        default=[],
        metavar="CHECK",
        help=f"continue despite the problems that this check finds ({' or '.join(acceptable)}); may be"
        " repeated",
    )
    made.add_argument(
        "--rate",
        type=_rate,
        default=DEFAULT_RATE,
        metavar="N",
        help=f"process at most N objects per second (default: {DEFAULT_RATE:g})",
    )
    return made


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(
            f"{text!r}: must be a number of objects greater than 0, such as 50 or 0.5"
        )
    return rate
