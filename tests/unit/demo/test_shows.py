"""Output of the demo: screen, plain lines, picture, summary and comparison."""

from __future__ import annotations

import io
from dataclasses import replace
from decimal import Decimal
from typing import TYPE_CHECKING

import pytest
from rich.console import Console

from hack.demo.checks import CheckFinding
from hack.demo.comparison import Account
from hack.demo.observation import AcceleratorView, ClientView, DemoObservation, ModelView, VariantView
from hack.demo.scenario import CHAPTERS
from hack.demo.shows import Frame, FrameMaker, LiveScreen, PlainLines, pick_frame, save_picture, screen
from hack.demo.summary import print_comparison, print_summary

if TYPE_CHECKING:
    from pathlib import Path

VARIANT = VariantView(
    name="llama-h100",
    shape="legacy",
    accelerator="H100",
    accelerators_per_replica=4,
    cost_per_replica=Decimal(400),
    current_replicas=2,
    placed_replicas=2,
    ready_replicas=1,
    desired_replicas=3,
    reason="ScaleUp",
    bound_by="Demand",
    message="llama-h100 goes from 2 to 3 replicas: [80 %]",
)
MODEL = ModelView(
    model_id="meta/llama",
    class_name="Premium",
    priority=1,
    ttft_target_ms=1500,
    clients=ClientView(requests_per_second=12.3, ttft_p90_ms=1810.0, unfinished_requests=40),
    variants=(VARIANT, replace(VARIANT, name="llama-a100", shape="current", desired_replicas=None)),
)
OBSERVATION = DemoObservation(
    seconds=65.0, models=(MODEL,), accelerators=(AcceleratorView(name="H100", used=8, total=16),)
)
FRAME = Frame(
    observation=OBSERVATION, chapter=CHAPTERS[1], decisions=(VARIANT.message,), notes=("$ kubectl apply",)
)


def drawn(frame: Frame, *, width: int = 150) -> str:
    """Return the text on a terminal of the given width."""
    console = Console(width=width, file=io.StringIO(), record=True)
    console.print(screen(frame))
    return console.export_text()


@pytest.mark.parametrize(
    "want",
    [
        pytest.param("a surge on the freemium model", id="the chapter"),
        pytest.param("1:05", id="the time"),
        pytest.param("1,600/h", id="the cost of all replicas"),
        pytest.param("Premium, priority 1", id="class and priority"),
        pytest.param("12.3", id="request rate"),
        pytest.param("1.81 s / 1.5 s", id="latency against its target"),
        pytest.param("4xH100 (legacy shape)", id="accelerators and shape"),
        pytest.param("2 -> 3", id="current and desired replicas"),
        pytest.param("2 -> ?", id="a decision that does not exist yet"),
        pytest.param("8/16", id="accelerators in use"),
        pytest.param("goes from 2 to 3 replicas: [80 %]", id="the latest decision, with brackets"),
        pytest.param("$ kubectl apply", id="a command that was run"),
    ],
)
def test_the_screen_contains_all_figures(want: str) -> None:
    """The frame is drawn on a terminal of 150 columns."""
    assert want in drawn(FRAME)


def test_the_screen_fits_a_narrow_terminal() -> None:
    """At 80 columns, texts are wrapped, and names remain complete."""
    assert "llama-h100" in drawn(FRAME, width=80)


def test_plain_lines_are_printed_only_for_changes() -> None:
    """An unchanged state prints nothing; a changed number is printed after the pause."""
    stream = io.StringIO()
    lines = PlainLines(stream)
    lines.update(FRAME)
    first = stream.getvalue()
    lines.update(replace(FRAME, observation=replace(OBSERVATION, seconds=80.0)))

    assert "meta/llama (12 req/s, TTFT p90 1810 ms of 1500 ms): llama-h100 2->3, llama-a100 2->?" in first
    assert stream.getvalue() == first

    changed = replace(MODEL, variants=(replace(VARIANT, current_replicas=3),))
    lines.update(replace(FRAME, observation=replace(OBSERVATION, seconds=81.0, models=(changed,))))
    assert stream.getvalue() == first
    lines.update(replace(FRAME, observation=replace(OBSERVATION, seconds=85.0, models=(changed,))))
    assert "llama-h100 3->3" in stream.getvalue()


def test_notes_are_printed_before_the_screen_starts_and_part_of_it_afterwards() -> None:
    """Other output would disturb a live screen."""
    stream = io.StringIO()
    live = LiveScreen(Console(file=stream, force_terminal=True, width=100))
    live.note("installing")
    live.update(FRAME)
    before = stream.getvalue()
    live.note("in between")

    assert "installing" in before
    assert stream.getvalue() == before
    live.close()


def test_the_picture_is_an_svg_with_the_text_of_the_screen(tmp_path: Path) -> None:
    """The README shows a picture of a real run."""
    path = tmp_path / "screen.svg"

    save_picture(FRAME, path, title="make demo")

    text = path.read_text()
    assert text.startswith("<svg")
    assert "llama-h100" in text


def test_the_picture_shows_a_preemption_while_the_first_model_meets_its_target() -> None:
    """In the first frame, no model is preempted; in the third, the first model misses its target."""
    served = replace(MODEL, clients=replace(MODEL.clients, ttft_p90_ms=400.0))
    yielding = replace(
        MODEL, model_id="small", variants=(replace(VARIANT, reason="Shortage", bound_by="Priority"),)
    )
    frames = [
        replace(FRAME, observation=replace(OBSERVATION, models=models))
        for models in ((served, MODEL), (served, yielding), (MODEL, yielding))
    ]

    assert pick_frame(frames) is frames[1]
    assert pick_frame(frames[::2]) is frames[2]


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_summary_names_failed_checks(*, is_terminal: bool) -> None:
    """It is a table on a terminal, and one line per check in a pipe."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=is_terminal, width=100)

    print_summary(
        console,
        [
            CheckFinding(name="it scales", holds=True, detail="1 -> 5"),
            CheckFinding(name="it falls", holds=False, detail="5 -> 5"),
        ],
    )

    text = stream.getvalue()
    assert "FAIL" in text
    assert ("FAIL it falls: 5 -> 5\n" in text) is not is_terminal


@pytest.mark.parametrize("is_terminal", [True, False])
def test_the_comparison_contains_missed_requests_cost_and_reversals_of_each_policy(
    *, is_terminal: bool
) -> None:
    """It is a table on a terminal, and one line per policy in a pipe."""
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=is_terminal, width=100)
    account = Account(policy="Stowplan", missed={"m": 0.056}, cost=193.4, reversals={"a": 1, "b": 3})

    print_comparison(console, [account, replace(account, policy="plain HPA", missed={"m": 0.25})])

    text = stream.getvalue()
    assert ("Stowplan, m missed 5.6%, cost 193, reversals 3\n" in text) is not is_terminal
    assert all(said in text for said in ("plain HPA", "5.6%", "25.0%", "193"))


def test_only_decisions_that_change_in_more_than_their_figures_are_listed() -> None:
    """Decisions with the reason Steady are not listed either."""
    maker = FrameMaker()
    maker.frame(OBSERVATION)
    maker.frame(replace(OBSERVATION, models=(replace(MODEL, variants=(replace(VARIANT, message="81 %"),)),)))
    steady = replace(VARIANT, reason="Steady", desired_replicas=2, message="stays")
    last = maker.frame(replace(OBSERVATION, models=(replace(MODEL, variants=(steady,)),)))

    assert last.decisions == (VARIANT.message, VARIANT.message)  # the two variants have one each
