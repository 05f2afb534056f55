"""A run of a benchmark: command line, pace of the machine, printed tables, results file and exit code."""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from hack.bench.goals import Goal
from hack.bench.table import Columns, table_lines
from hack.calling.connection import ConnectionBrokenError
from hack.calling.cores import Cores
from hack.calling.load import WrongAnswerError
from hack.calling.reviews import create, model
from hack.controlplane import ControlPlaneError

OURS: Final = "stowplan"
STRAIGHTFORWARD: Final = "straightforward"
"""Names of the compared implementations."""

_COULD_NOT_RUN = (ConnectionBrokenError, ControlPlaneError, OSError, WrongAnswerError)
_REFERENCE_US: Final = 40.8
"""CPU time of `json.loads` of the review of a Model's creation on the machine where goals were set, in µs."""

_CALLS: Final = 200
_LOOK_SECONDS: Final = 0.3


class NothingChosenError(Exception):
    """The options select nothing to measure."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResultPart:
    """One part of the results so far."""

    name: str = ""
    """Name of its rows in the results file; rows of a part without a name are not written."""
    rows: Sequence[Mapping[str, Any]] = ()
    tables: Sequence[Sequence[str]] = ()
    """Printed tables, each a list of lines."""
    goals: Sequence[Goal] = ()


def part_of(
    name: str,
    results: Sequence[Any],
    *tables: Sequence[str],
    columns: Columns[Any] = (),
    goals: Iterable[Goal] = (),
) -> ResultPart:
    """Return a part of data classes, each a row and, with columns, a line of a table."""
    own = [table_lines(columns, results)] if columns else []
    return ResultPart(
        name=name, rows=[asdict(one) for one in results], tables=[*tables, *own], goals=[*goals]
    )


@dataclass(kw_only=True, slots=True)
class BenchmarkRun:
    """A run in progress."""

    cores: Cores = field(default_factory=lambda: Cores.split(frozenset(os.sched_getaffinity(0))))
    loads_us: list[float] = field(default_factory=list)
    """CPU time of `json.loads` of one document at each step so far."""
    failures: list[str] = field(default_factory=list)
    """Messages about requested measurements that are missing, with the reasons."""

    def say(self, text: str) -> None:
        """Report progress."""
        print(text, file=sys.stderr, flush=True)

    def step(self, text: str) -> None:
        """Report the next step, and measure the current pace of the machine."""
        self.say(text)
        self.loads_us.append(_loads_us(create(model())))

    @property
    def slowness(self) -> float:
        """Ratio of the pace so far to that where goals were set. Raises StatisticsError before a step."""
        return statistics.median(self.loads_us) / _REFERENCE_US

    @contextmanager
    def pin(self) -> Iterator[None]:
        """Pin the calling thread to the load's cores until the block ends."""
        allowed = os.sched_getaffinity(0)
        self.cores.pin_load()
        try:
            yield
        finally:
            os.sched_setaffinity(0, allowed)


Measure = Callable[[argparse.Namespace, BenchmarkRun], Iterator[Sequence[ResultPart]]]
"""Measures what the options select, and yields all parts so far each time there are more.

May raise NothingChosenError, and the errors that end a run: ConnectionBrokenError, ControlPlaneError, OSError
and WrongAnswerError.
"""


def main(name: str, parser: argparse.ArgumentParser, measure: Measure) -> int:
    """Measure and print; return 1 if something could not be measured, else 0, even if goals are missed.

    An interrupt ends the run with the results so far, which the results file always contains.
    """
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all results to this file")
    options = parser.parse_args()
    run, began = BenchmarkRun(), datetime.now(UTC)
    parts: Sequence[ResultPart] = ()
    try:
        for parts in measure(options, run):
            _write(name, options, began, parts)
    except KeyboardInterrupt:
        run.failures.append("interrupted: the rest was not measured")
    except (NothingChosenError, *_COULD_NOT_RUN) as error:
        run.say(f"bench-{name} could not run: {error}")
        return 1
    _print(parts, run, seconds=(datetime.now(UTC) - began).total_seconds())
    return 1 if run.failures else 0


def add_count(parser: argparse.ArgumentParser, option: str, *, default: int, text: str) -> None:
    """Add an option whose value is an integer of at least 1."""
    parser.add_argument(option, type=_count, default=default, metavar="N", help=f"{text} [{default}]")


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _write(name: str, options: argparse.Namespace, began: datetime, parts: Sequence[ResultPart]) -> None:
    """Replace the results file, if requested, atomically. Raises ValueError for NaN or infinity."""
    if options.json is None:
        return
    document = {
        "benchmark": name,
        "began": began.isoformat(timespec="seconds"),
        "settings": {option: value for option, value in vars(options).items() if option != "json"},
        "tables": {part.name: [*part.rows] for part in parts if part.name},
        "goals": [asdict(goal) | {"met": goal.is_met} for part in parts for goal in part.goals],
    }
    text = json.dumps(document, indent=2, allow_nan=False, ensure_ascii=False)
    unfinished = options.json.with_name(f"{options.json.name}.unfinished")
    unfinished.write_text(f"{text}\n", "utf-8")
    unfinished.replace(options.json)


def _print(parts: Sequence[ResultPart], run: BenchmarkRun, *, seconds: float) -> None:
    """Print the machine and its pace, then tables, then goals; failures go to stderr."""
    print(
        f"{os.cpu_count()} cores, Python {platform.python_version()}; load average {os.getloadavg()[0]:.2f};"
        f" {run.slowness:.1f} times as slow as where the goals were set\n"
    )
    for part in parts:
        for table in filter(None, part.tables):
            print(*table, "", sep="\n")
    print(f"measured in {seconds:.0f} s\n")
    for part in parts:
        for goal in part.goals:
            print(goal.line())
    for failure in run.failures:
        run.say(failure)


def _loads_us(document: bytes) -> float:
    """Return the CPU time of `json.loads`, in µs: the least mean of several batches.

    A core that was idle takes up to twice as long for its first 0.2 s, which says nothing about the machine.
    """
    until, batches = time.monotonic() + _LOOK_SECONDS, list[float]()
    while not batches or time.monotonic() < until:
        began = time.thread_time()
        for _ in range(_CALLS):
            json.loads(document)
        batches.append((time.thread_time() - began) / _CALLS * 1e6)
    return min(batches)
