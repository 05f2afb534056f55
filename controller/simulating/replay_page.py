"""Replays as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from controller.offline.template import rendered
from controller.simulating.chart import HEIGHT, MOST_POINTS, WIDTH, Chart, Mark
from controller.simulating.decided_charts import decided_charts
from controller.simulating.replay import Replay
from controller.simulating.replay_text import replay_summary
from controller.simulating.scale import moments
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
    """Return the charts of the decisions, in which every change is marked."""
    marks = tuple(
        Mark(
            seconds=point.seconds,
            value=float(point.replicas),
            text=f"{clock(point.seconds)}  {point.sentence}",
            anchor=f"{anchor}-{place}",
        )
        for place, point in enumerate(replay.changes)
    )
    return decided_charts(replay, moments(0.0, replay.points[-1].seconds), marks)


def _remarks(replays: Sequence[Replay]) -> Iterator[str]:
    yield "Dots are changes: hover over one to see the reason."
    yield "Recorded metrics do not respond to decisions."
    longest = max(len(replay.points) for replay in replays)
    if longest > MOST_POINTS:
        yield f"Each point is the greatest value of {-(-longest // MOST_POINTS)} intervals."
