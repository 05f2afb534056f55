"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from hack.bench.command import Command, NothingChosenError, add_count, main
from hack.bench.frame import Frame
from hack.bench.goals import Goal
from hack.bench.load import WrongAnswerError
from hack.bench.measurement import Part

Measure = Callable[[argparse.Namespace, Frame], Iterator[Sequence[Part]]]


def sample(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
    """Yield one part with a table of one line and a missed goal."""
    frame.step("in process")
    goal = Goal(name="cpu", value=90.0, unit="µs", most=80)
    rows = [{"cpu_us": 90.0, "calls": options.calls}]
    yield [Part(name="in_process", rows=rows, tables=[["case  90"], []], goals=[goal])]


def partly(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
    """Yield the same part, and record that another part failed."""
    yield from sample(options, frame)
    frame.failures.append("a part is missing: x")


def interrupted(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
    """Yield the same part, and raise KeyboardInterrupt."""
    yield from sample(options, frame)
    raise KeyboardInterrupt


def command(measure: Measure = sample) -> Command:
    """Return a command with an additional option."""
    return Command(
        name="sample",
        description=None,
        seconds=0.25,
        add_options=lambda parser: add_count(parser, "--calls", default=7, text="calls"),
        measure=measure,
    )


def stopped(error: Exception) -> Measure:
    """Return a `measure` function that raises an error."""

    def measure(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
        raise error

    return measure


def test_tables_come_before_goals_and_a_missed_goal_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    """Progress is printed to standard error."""
    assert main(command(), []) == 0

    printed = capsys.readouterr()
    lines = printed.out.splitlines()
    assert [line.partition(":")[0] for line in lines[:4]] == ["busy", "machine", "machine", "pace"]
    assert lines[4:] == [
        "",
        "case  90",
        "",
        "measured in 0 s",
        "",
        "goal: cpu 90.0 µs, wanted <= 80: missed",
    ]
    assert printed.err == "in process\n"


def test_the_results_file_contains_the_complete_run(tmp_path: Path) -> None:
    """It has settings, rows, goals and the machine before and after; no other file remains."""
    path = tmp_path / "results.json"

    assert main(command(), ["--rounds", "2", "--json", str(path)]) == 0

    read = json.loads(path.read_text(encoding="utf-8"))
    assert list(read) == ["benchmark", "began", "machine", "pace", "settings", "tables", "goals"]
    assert read["benchmark"] == "sample"
    assert read["settings"] == {"rounds": 2, "seconds": 0.25, "calls": 7}
    assert read["tables"] == {"in_process": [{"cpu_us": 90.0, "calls": 7}]}
    assert read["goals"] == [{"name": "cpu", "value": 90.0, "unit": "µs", "most": 80, "met": False}]
    assert len(read["machine"]) == 2
    assert read["pace"]["slowness"] == read["pace"]["here_us"] / read["pace"]["there_us"]
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("measure", "told"),
    [(partly, "a part is missing: x"), (interrupted, "interrupted: the rest was not measured")],
)
def test_a_missing_part_is_reported_after_the_other_results(
    measure: Measure, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The measured parts are printed and saved."""
    path = tmp_path / "results.json"
    assert main(command(measure), ["--json", str(path)]) == 1

    printed = capsys.readouterr()
    assert "case  90" in printed.out
    assert printed.err.endswith(f"{told}\n")
    assert json.loads(path.read_text(encoding="utf-8"))["tables"]["in_process"]


def test_a_killed_run_leaves_the_parts_measured_so_far(tmp_path: Path) -> None:
    """Until the run ends, the file is marked as unfinished."""
    path, kept = tmp_path / "results.json", []

    def killed(options: argparse.Namespace, frame: Frame) -> Iterator[Sequence[Part]]:
        yield from sample(options, frame)
        kept.append(json.loads(path.read_text(encoding="utf-8"))["unfinished"])

    assert main(command(killed), ["--json", str(path)]) == 0
    assert kept == [True]
    assert "unfinished" not in json.loads(path.read_text(encoding="utf-8"))


STOPS = {
    "a wrong answer": (WrongAnswerError("status 500"), "bench-sample could not run: status 500\n"),
    "an empty selection": (NothingChosenError("no case has 'x'"), "no case has 'x'\n"),
}


@pytest.mark.parametrize(("error", "want"), STOPS.values(), ids=STOPS.keys())
def test_an_error_that_stops_the_benchmark_is_reported(
    error: Exception, want: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is one line without a traceback."""
    assert main(command(stopped(error)), []) == 1
    assert capsys.readouterr().err == want


@pytest.mark.parametrize("option", ["--rounds", "--calls"])
def test_a_count_is_at_least_one(option: str, capsys: pytest.CaptureFixture[str]) -> None:
    """There is no median of zero rounds."""
    with pytest.raises(SystemExit):
        main(command(), [option, "0"])

    assert f"argument {option}: must be at least 1" in capsys.readouterr().err
