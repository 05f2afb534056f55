"""The schedule of the placement benchmark, failures and the results file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hack.bench.command import NothingChosenError, main
from hack.bench.compared import OURS
from hack.bench.frame import Frame
from hack.bench.placement.__main__ import _COMMAND
from hack.bench.placement.engines import HIGHS
from hack.bench.placement.measuring import measure
from hack.bench.placement.schedule import PlacementSettings
from hack.fleets.catalogue import RULED

GREEDY = "wva-greedy"


def settings_of(
    *engines: str,
    sizes: tuple[int, ...] = (100, 500),
    family: str = "F4-tight",
    largest: tuple[str, ...] = (),
    again: tuple[str, ...] = (),
) -> PlacementSettings:
    """Return settings that use HiGHS for up to 500 models."""
    return PlacementSettings(
        rounds=5,
        seconds=1.0,
        families=(family,),
        sizes=sizes,
        seeds=(0,),
        engines=engines,
        most_highs=500,
        largest=largest,
        again=again,
        repeats=1,
    )


def test_highs_is_used_only_where_it_can_finish() -> None:
    """It gets small fleets and one round, no sequences, and no families with rules of pods."""
    jobs = list(settings_of(OURS, HIGHS, sizes=(100, 500, 2000)).jobs())

    assert [job.instance.size for job in jobs if job.engine == OURS] == [100, 500, 2000]
    assert [job.instance.size for job in jobs if job.engine == HIGHS] == [100, 500]
    assert {job.rounds for job in jobs if job.engine != OURS} == {1}
    for family in ("F13-waves", *RULED):
        few = settings_of(OURS, HIGHS, sizes=(100,), family=family)
        assert [job.engine for job in few.jobs()] == [OURS]


def test_large_fleets_are_placed_less_often() -> None:
    """This applies to every engine; the largest fleets are placed only on request."""
    sizes = (20, 100, 500, 2000, 10_000)
    jobs = list(settings_of(OURS, GREEDY, sizes=sizes, largest=("F4-tight",)).jobs())

    assert [job.rounds for job in jobs if job.engine == OURS] == [3, 3, 2, 1, 1]
    assert [job.rounds for job in jobs if job.engine == GREEDY] == [3, 3, 2, 1, 1]
    assert {job.instance.size for job in settings_of(OURS, sizes=sizes).jobs()} == {20, 100, 500, 2000}


def test_results_are_yielded_after_each_part() -> None:
    """Progress lines contain the elapsed time."""
    said: list[str] = []
    asked = settings_of(GREEDY, "kthena-expansion", sizes=(100,))
    outcomes = [len(parts[0].rows) for parts in measure(asked, Frame(progress=said.append))]

    assert outcomes == [1, 2, 2]
    assert said[0] == "  0:00 F4-tight/100/0: wva-greedy"


def test_a_failure_does_not_stop_the_rest() -> None:
    """It is reported at once and at the end."""
    said: list[str] = []
    frame = Frame(progress=said.append)
    *_, last = measure(settings_of(sizes=(20,), again=("again-nothing", "again-none")), frame)

    assert frame.failures[0] == "planning again-nothing/20/0 again: KeyError: 'again-nothing'"
    assert "again-none/20/0" in frame.failures[1]
    assert sum("broken: planning" in text for text in said) == 2
    assert not any(part.rows for part in last)


def test_an_empty_schedule_is_an_error() -> None:
    """Complete plans are measured only for 500 models or more."""
    with pytest.raises(NothingChosenError, match="nothing that was chosen is measured"):
        list(measure(settings_of(sizes=(20,)), Frame(progress=print)))


def test_options_select_what_is_measured(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Results are printed and written to a file."""
    path = tmp_path / "found.json"
    chosen = ["--families", "F4", "--sizes", "20", "--engines", GREEDY, "--rounds", "1", "--json", str(path)]

    assert main(_COMMAND, chosen) == 0
    assert "F4-tight" in capsys.readouterr().out
    outcomes = json.loads(path.read_text(encoding="utf-8"))["tables"]["outcomes"]
    assert [row["engine"] for row in outcomes] == [GREEDY]
