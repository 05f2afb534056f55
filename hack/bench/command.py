"""The command line of a benchmark: options, what is printed, and how it ends."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hack.bench.connection import ConnectionBrokenError
from hack.bench.load import WrongAnswerError
from hack.bench.measurement import Measurement
from hack.bench.results import results, write_results
from hack.bench.server_process import ServerNotStartedError

_COULD_NOT_RUN = (
    ConnectionBrokenError,
    OSError,
    ServerNotStartedError,
    WrongAnswerError,
)


class NothingChosenError(Exception):
    """The options leave nothing to measure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """What one benchmark's command line has of its own."""

    name: str
    description: str | None
    seconds: float | None
    """Of each case, server and round, unless options say otherwise; None where there are no rounds."""
    add_options: Callable[[argparse.ArgumentParser], None]
    measure: Callable[[argparse.Namespace, Callable[[str], None]], Measurement]
    """By options, telling of its progress; may raise NothingChosenError, and all that stops a measuring."""


def main(command: Command, arguments: Sequence[str]) -> int:
    """Measure and print; 0 whatever was measured, 1 when it could not be."""
    options = _parser(command).parse_args(arguments)
    began, clock = datetime.now(UTC), time.monotonic()
    try:
        measured = command.measure(options, _say)
        if options.json is not None:
            write_results(options.json, _document(command.name, measured, began))
    except NothingChosenError as error:
        _say(str(error))
        return 1
    except _COULD_NOT_RUN as error:
        _say(f"bench-{command.name} could not run: {error}")
        return 1
    _print(measured, seconds=time.monotonic() - clock)
    return 1 if measured.failure else 0


def add_count(parser: argparse.ArgumentParser, option: str, *, default: int, text: str) -> None:
    """Add an option whose value is a number, at least 1."""
    parser.add_argument(option, type=_count, default=default, metavar="N", help=f"{text} [{default}]")


def _parser(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m hack.bench.{command.name}", description=command.description
    )
    if command.seconds is not None:
        add_count(parser, "--rounds", default=5, text="medians are of so many")
        text = f"of each case, server and round [{command.seconds}]"
        parser.add_argument("--seconds", type=float, default=command.seconds, metavar="S", help=text)
    command.add_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _document(name: str, measured: Measurement, began: datetime) -> dict[str, Any]:
    return results(
        name,
        began=began,
        machine=measured.machine,
        pace=measured.pace,
        settings=asdict(measured.settings),
        tables=measured.tables(),
        goals=measured.goals,
    )


def _print(measured: Measurement, *, seconds: float) -> None:
    for line in measured.report():
        print(line)
    print(f"measured in {seconds:.0f} s\n")
    for goal in measured.goals:
        print(goal.line())
    if measured.failure:
        _say(measured.failure)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
