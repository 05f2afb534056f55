"""`python -m hack.bench.conversion`: CPU time of conversion, ours beside a straightforward server's."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from hack.bench.connection import ConnectionBrokenError
from hack.bench.conversion.cases import cases
from hack.bench.conversion.measurement import Measurement, Settings, measure, with_control_plane
from hack.bench.conversion.report import report
from hack.bench.load import WrongAnswerError
from hack.bench.results import results, write_results
from hack.bench.server_process import ServerNotStartedError

_COULD_NOT_RUN = (
    ConnectionBrokenError,
    OSError,
    ServerNotStartedError,
    WrongAnswerError,
)


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 0 whatever was measured, 1 when it could not be."""
    options = _parser().parse_args(arguments)
    began, clock = datetime.now(UTC), time.monotonic()
    try:
        measured = measure(cases(), _settings(options), progress=_say)
        measured = with_control_plane(measured, progress=_say)
        if options.json is not None:
            _write(options.json, measured, began)
    except _COULD_NOT_RUN as error:
        print(f"bench-conversion could not run: {error}", file=sys.stderr)
        return 1
    for line in report(measured):
        print(line)
    print(f"measured in {time.monotonic() - clock:.0f} s\n")
    for goal in measured.goals:
        print(goal.line())
    if measured.failure:
        print(f"the control plane's part is missing: {measured.failure}", file=sys.stderr)
    return 1 if measured.failure else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.conversion", description=__doc__)
    parser.add_argument("--rounds", type=_count, default=5, metavar="N", help="medians are of so many [5]")
    parser.add_argument(
        "--seconds", type=float, default=0.3, metavar="S", help="of each case, server and round [0.3]"
    )
    parser.add_argument(
        "--calls", type=_count, default=200, metavar="N", help="reads and writes of each sort [200]"
    )
    parser.add_argument(
        "--stored", type=_count, default=5000, metavar="N", help="objects stored in the old version [5000]"
    )
    parser.add_argument(
        "--restarts", type=_count, default=2, metavar="N", help="of the API server, with each converter [2]"
    )
    parser.add_argument("--without-control-plane", action="store_true", help="leave out the API server")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write everything that was measured")
    return parser


def _count(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _settings(options: argparse.Namespace) -> Settings:
    return Settings(
        rounds=options.rounds,
        seconds=options.seconds,
        calls=0 if options.without_control_plane else options.calls,
        stored=options.stored,
        restarts=options.restarts,
    )


def _write(path: Path, measured: Measurement, began: datetime) -> None:
    document = results(
        "conversion",
        began=began,
        machine=measured.machine,
        pace=measured.pace,
        settings=asdict(measured.settings),
        tables=measured.tables(),
        goals=measured.goals,
    )
    write_results(path, document)


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
