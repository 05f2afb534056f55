"""The command line that the benchmarks share."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.goals import Goal
from hack.bench.load import WrongAnswerError
from hack.bench.machine import Machine
from hack.bench.measurement import Measurement, RoundSettings
from hack.bench.pace import Pace

MACHINE = Machine(processor="x", cores=2, python="3.11.7", load_average=0.5, pressure_percent=None)


@dataclass(frozen=True, kw_only=True, slots=True)
class Sample(Measurement):
    """One table of one line, and one goal."""

    @property
    def goals(self) -> list[Goal]:
        """Missed, whatever was measured."""
        return [Goal(name="cpu", value=90.0, unit="µs", most=80)]

    def tables(self) -> dict[str, list[dict[str, Any]]]:
        """Return one row."""
        return {"in_process": [{"cpu_us": 90.0}]}

    def printed_tables(self) -> Iterator[Sequence[str]]:
        """Yield one table."""
        yield ["case  90"]


def sample(options: argparse.Namespace, progress: Callable[[str], None], *, failure: str = "") -> Sample:
    """Return a measurement by options."""
    progress("in process")
    return Sample(
        settings=RoundSettings(rounds=options.rounds, seconds=options.seconds),
        machine=(MACHINE, MACHINE),
        pace=Pace(here_us=80.0, there_us=40.0),
        failure=failure,
    )


def command(measure: Callable[[argparse.Namespace, Callable[[str], None]], Sample] = sample) -> Command:
    """Return a command with one option of its own."""
    return Command(
        name="sample",
        description=None,
        seconds=0.25,
        add_options=lambda parser: add_count(parser, "--calls", default=7, text="calls"),
        measure=measure,
    )


def stopped(error: Exception) -> Callable[[argparse.Namespace, Callable[[str], None]], Sample]:
    """Return a measuring that an error stops."""

    def measure(options: argparse.Namespace, progress: Callable[[str], None]) -> Sample:
        raise error

    return measure


def test_tables_come_before_goals_and_a_missed_goal_fails_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress goes elsewhere."""
    assert main(command(), []) == 0

    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert lines[0].startswith("busy: load average 0.50 to 0.50, ")
    assert lines[4:] == [
        "",
        "case  90",
        "",
        "measured in 0 s",
        "",
        "goal: cpu 90.0 µs, wanted <= 80: missed",
    ]
    assert printed.err == "in process\n"


def test_the_results_file_says_what_was_asked_for(tmp_path: Path) -> None:
    """Options become settings."""
    path = tmp_path / "results.json"

    assert main(command(), ["--rounds", "2", "--json", str(path)]) == 0

    read = json.loads(path.read_text(encoding="utf-8"))
    assert read["benchmark"] == "sample"
    assert read["settings"] == {"rounds": 2, "seconds": 0.25}


def test_a_part_that_is_missing_is_told_after_the_rest(capsys: pytest.CaptureFixture[str]) -> None:
    """What was measured is not lost."""
    partly = command(lambda options, progress: sample(options, progress, failure="a part is missing: x"))

    assert main(partly, []) == 1

    printed = capsys.readouterr()
    assert "case  90" in printed.out
    assert printed.err.endswith("a part is missing: x\n")


STOPS = {
    "a wrong answer": (WrongAnswerError("status 500"), "bench-sample could not run: status 500\n"),
    "nothing chosen": (NothingChosenError("no case has 'x'"), "no case has 'x'\n"),
}


@pytest.mark.parametrize(("error", "want"), STOPS.values(), ids=STOPS.keys())
def test_what_stops_a_measuring_is_told(
    error: Exception, want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """By one line, without a trace."""
    assert main(command(stopped(error)), []) == 1
    assert capsys.readouterr().err == want


@pytest.mark.parametrize("option", ["--rounds", "--calls"])
def test_a_count_is_at_least_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of nothing there is no median."""
    with pytest.raises(SystemExit):
        main(command(), [option, "0"])

    assert f"argument {option}: must be at least 1" in capsys.readouterr().err
