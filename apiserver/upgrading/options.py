"""Command line options of subcommands that change a cluster step by step."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from apiserver.program import program
from apiserver.upgrading.findings import ACCEPTABLE

DEFAULT_RATE: Final = 100.0
EXIT_CODES: Final = """
exit code: 0 done, planned, or nothing to do; 1 a check found a problem, or an
object cannot be taken along; 2 wrong usage, or no cluster to speak to
"""


def parser(
    verb: str, description: str, epilog: str, *, acceptable: Sequence[str] = ACCEPTABLE
) -> argparse.ArgumentParser:
    """Return a parser with the common options; `acceptable` are the checks for `--accept`."""
    made = argparse.ArgumentParser(
        prog=program(verb),
        description=description,
        epilog=epilog + EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    made.add_argument("--apply", action="store_true", help="do it; without this, only the plan is printed")
    made.add_argument("--kubeconfig", type=Path, metavar="FILE", help="which kubeconfig to use")
    made.add_argument("--context", metavar="NAME", help="which of its contexts to use")
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="text is the default")
    made.add_argument(
        "--accept",
        action="append",
        choices=acceptable,
        default=[],
        metavar="CHECK",
        help=f"go on in spite of what this check finds ({' or '.join(acceptable)}); may be repeated",
    )
    made.add_argument(
        "--rate",
        type=_rate,
        default=DEFAULT_RATE,
        metavar="N",
        help=f"work on at most N objects per second (default {DEFAULT_RATE:g})",
    )
    return made


def _rate(text: str) -> float:
    try:
        rate = float(text)
    except ValueError:
        rate = 0.0
    if not 0 < rate < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of objects above 0, such as 50 or 0.5")
    return rate
