"""`python -m hack.bench.admission`: CPU time of admission, ours beside a straightforward server's."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from hack.bench.admission.cases import cases
from hack.bench.admission.measurement import Measurement, Settings, measure, with_api_server
from hack.bench.admission.report import report
from hack.bench.connection import ConnectionBrokenError
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
    chosen = [case for case in cases() if options.only.lower() in f"{case.name} /{case.verb}".lower()]
    if not chosen:
        print(f"no case has {options.only!r} in its name", file=sys.stderr)
        return 1
    try:
        measured = measure(chosen, _settings(options), progress=_say)
        measured = with_api_server(measured, chosen, progress=_say)
        if options.json is not None:
            _write(options.json, measured, began)
    except _COULD_NOT_RUN as error:
        print(f"bench-admission could not run: {error}", file=sys.stderr)
        return 1
    for line in report(measured):
        print(line)
    print(f"measured in {time.monotonic() - clock:.0f} s\n")
    for goal in measured.goals:
        print(goal.line())
    if measured.failure:
        print(f"the API server's own account is missing: {measured.failure}", file=sys.stderr)
    return 1 if measured.failure else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m hack.bench.admission", description=__doc__)
    parser.add_argument("--rounds", type=_count, default=5, metavar="N", help="medians are of so many [5]")
    parser.add_argument(
        "--seconds", type=float, default=0.35, metavar="S", help="of each case, server and round [0.35]"
    )
    parser.add_argument("--connections", type=_count, default=16, metavar="N", help="busy at once [16]")
    parser.add_argument(
        "--calls",
        type=_count,
        default=200,
        metavar="N",
        help="writes of each sort on the control plane [200]",
    )
    parser.add_argument(
        "--without-control-plane", action="store_true", help="leave out the API server's own metrics"
    )
    parser.add_argument(
        "--only", default="", metavar="TEXT", help='just the cases with this text: "model, create /mutate"'
    )
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
        connections=options.connections,
        calls=0 if options.without_control_plane else options.calls,
    )


def _write(path: Path, measured: Measurement, began: datetime) -> None:
    document = results(
        "admission",
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
