"""Charts of the decisions of a policy over time: recommended and decided replicas, and each metric."""

from __future__ import annotations

from collections.abc import Iterator

from controller.closedloop.decided import Decided
from controller.simulating.chart import Chart, Line, Mark
from controller.simulating.decided_text import Kind, courses_of
from controller.simulating.scale import Scale, linear
from controller.simulating.wording import moment


def decided_charts(decided: Decided, time: Scale, marks: tuple[Mark, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of the replicas with the marks, of each metric, and of each of several targets."""
    courses = courses_of(decided)
    (replicas,) = (item for item in courses if item.kind is Kind.DECIDED)
    (recommended,) = (item for item in courses if item.kind is Kind.RECOMMENDED)
    both = (
        Line(name=replicas.name, look="ready", course=replicas.course, is_stepped=True, is_area=True),
        Line(name=recommended.name, look="wanted", course=recommended.course, is_stepped=True),
    )
    drawn = [
        (item.name, (Line(name=item.name, look="load", course=item.course, is_stepped=True),), ())
        for item in courses
        if item.kind in (Kind.METRIC, Kind.TARGET)
    ]
    for title, lines, here in (("Replicas", both, marks), *drawn):
        yield Chart(
            title=title,
            lines=lines,
            time=time,
            values=linear(value for line in lines for _, value in line.course),
            value_text=lambda value: f"{value:,.6g}",
            time_text=moment,
            marks=here,
        )
