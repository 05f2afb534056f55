"""The command line of a benchmark: options, printed tables, results file and exit code."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, is_dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from hack.bench.frame import Frame
from hack.bench.machine import Machine, busyness, look
from hack.bench.measurement import Part
from hack.calling.connection import ConnectionBrokenError
from hack.calling.load import WrongAnswerError
from hack.controlplane import ControlPlaneError

_COULD_NOT_RUN = (ConnectionBrokenError, ControlPlaneError, OSError, WrongAnswerError)


class NothingChosenError(Exception):
    """The options select nothing to measure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Command:
    """The parts of the command line that differ between benchmarks."""

    name: str
    description: str | None
    seconds: float | None = None
    """Default of `--seconds`; None for benchmarks without rounds, which lack `--rounds` and `--seconds`."""
    add_options: Callable[[argparse.ArgumentParser], None]
    settings: Callable[[argparse.Namespace], Any] = lambda options: options
    """Derives the settings from the options: a data class, or the options. May raise NothingChosenError."""
    measure: Callable[[Any, Frame], Iterator[Sequence[Part]]]
    """Measures according to the settings, and yields all parts so far each time there are more.

    May raise NothingChosenError, and the errors that end a run: ConnectionBrokenError, ControlPlaneError,
    OSError and WrongAnswerError.
    """


def main(command: Command, arguments: Sequence[str]) -> int:
    """Measure and print; return 1 if something could not be measured, else 0, even if goals are missed."""
    options = _parser(command).parse_args(arguments)
    run = _Run(command.name, options.json)
    try:
        settings = command.settings(options)
        run.follow(settings, command.measure(settings, run.frame))
    except NothingChosenError as error:
        _say(str(error))
        return 1
    except _COULD_NOT_RUN as error:
        _say(f"bench-{command.name} could not run: {error}")
        return 1
    run.print()
    return 1 if run.frame.failures else 0


def add_count(parser: argparse.ArgumentParser, option: str, *, default: int, text: str) -> None:
    """Add an option whose value is an integer of at least 1."""
    parser.add_argument(option, type=_count, default=default, metavar="N", help=f"{text} [{default}]")


def _parser(command: Command) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m hack.bench.{command.name}", description=command.description
    )
    if command.seconds is not None:
        add_count(parser, "--rounds", default=5, text="number of rounds; medians of all are reported")
        text = f"seconds per case, server and round, or limit per placement problem [{command.seconds}]"
        parser.add_argument("--seconds", type=float, default=command.seconds, metavar="S", help=text)
    command.add_options(parser)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


class _Run:
    """One run of a benchmark, with the results so far."""

    def __init__(self, name: str, path: Path | None) -> None:
        self._name, self._path = name, path
        self._began, self._clock = datetime.now(UTC), time.monotonic()
        self._parts: Sequence[Part] = ()
        self._machine: tuple[Machine, ...] = ()
        self.frame = Frame(progress=_say)

    def follow(self, settings: object, measuring: Iterator[Sequence[Part]]) -> None:
        """Measure until the end or an interrupt; the file always contains the results so far.

        Raises NothingChosenError if it is interrupted before the first result.
        """
        try:
            for parts in measuring:
                self._parts = parts
                self._write(settings, {"unfinished": True})
        except KeyboardInterrupt:
            if not self._parts:
                raise NothingChosenError("interrupted: nothing was measured") from None
            self.frame.failures.append("interrupted: the rest was not measured")
        self._write(settings, {})

    def _write(self, settings: object, more: dict[str, Any]) -> None:
        """Record the machine's state, and replace the results file, if requested, atomically.

        Raises ValueError for NaN or infinity.
        """
        self._machine = (self.frame.before, look())
        if self._path is None:
            return
        pace = self.frame.pace()
        document = {
            "benchmark": self._name,
            "began": self._began.isoformat(timespec="seconds"),
            "machine": [asdict(state) for state in self._machine],
            "pace": asdict(pace) | {"slowness": pace.slowness},
            "settings": _as_json(settings),
            "tables": {part.name: [*part.rows] for part in self._parts if part.name},
            "goals": [goal.as_json() for part in self._parts for goal in part.goals],
        }
        text = json.dumps(document | more, indent=2, allow_nan=False, ensure_ascii=False)
        unfinished = self._path.with_name(f"{self._path.name}.unfinished")
        unfinished.write_text(f"{text}\n", "utf-8")
        unfinished.replace(self._path)

    def print(self) -> None:
        """Print the machine's state, then tables, then goals; failures go to stderr."""
        print(f"busy: {busyness(self._machine)}")
        print(*(f"machine: {state.line()}" for state in self._machine), sep="\n")
        print(f"pace: {self.frame.pace().line()}\n")
        for part in self._parts:
            for table in filter(None, part.tables):
                print(*table, "", sep="\n")
        print(f"measured in {time.monotonic() - self._clock:.0f} s\n")
        for part in self._parts:
            for goal in part.goals:
                print(goal.line())
        for failure in self.frame.failures:
            _say(failure)


def _as_json(settings: object) -> dict[str, Any]:
    if is_dataclass(settings) and not isinstance(settings, type):
        return asdict(settings)
    return {name: value for name, value in vars(settings).items() if name != "json"}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
