"""Replays as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.offline.template import rendered
from controller.simulating.chart import HEIGHT, MOST_POINTS, WIDTH, Chart, Line, Mark
from controller.simulating.replay import Replay
from controller.simulating.replay_text import courses_of, replay_summary
from controller.simulating.scale import linear, moments
from controller.simulating.wording import clock


def replay_page(replays: Sequence[Replay]) -> str:
    """Return the complete page."""
    anchors = [f"policy-{position + 1}" for position in range(len(replays))]
    return rendered(
        "controller.simulating",
        "replay.html",
        title="Stowplan: policies on recorded metrics",
        replays=list(zip(replays, anchors, strict=True)),
        summary=replay_summary,
        remarks=list(_remarks(replays)),
        charts_of=charts_of,
        clock=clock,
        width=WIDTH,
        height=HEIGHT,
    )


def charts_of(replay: Replay, anchor: str) -> Iterator[Chart]:
    """Yield a chart of the replicas with every change, of each metric, and of each of several targets."""
    time = moments(0.0, replay.points[-1].seconds)
    courses = courses_of(replay)
    marks = tuple(
        Mark(
            seconds=point.seconds,
            value=float(point.replicas),
            text=f"{clock(point.seconds)}  {point.sentence}",
            anchor=f"{anchor}-{place}",
        )
        for place, point in enumerate(replay.changes)
    )
    asked, replicas = courses.pop("requested"), courses.pop("replicas")
    drawn = [
        (name.strip(), (Line(name=name.strip(), look="load", course=course, is_stepped=True),), ())
        for name, course in courses.items()
    ]
    both = (
        Line(name="replicas", look="ready", course=replicas, is_stepped=True, is_area=True),
        Line(name="requested", look="wanted", course=asked, is_stepped=True),
    )
    for title, lines, here in (("Replicas", both, marks), *drawn):
        known = [value for line in lines for _, value in line.course]
        yield Chart(
            title=title,
            lines=lines,
            time=time,
            values=linear(known),
            value_text=lambda value: f"{value:,.6g}",
            time_text=clock,
            marks=here,
        )


def _remarks(replays: Sequence[Replay]) -> Iterator[str]:
    yield "Dots are changes: hover over one to see the reason."
    yield "Recorded metrics do not respond to decisions."
    longest = max(len(replay.points) for replay in replays)
    if longest > MOST_POINTS:
        yield f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals."
