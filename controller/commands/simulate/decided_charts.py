"""Charts of the decisions of a policy over time: recommended and decided replicas, and each metric."""

from __future__ import annotations

from collections.abc import Iterator

from controller.closedloop.decided import Decided
from controller.commands.simulate.chart import Chart, Line, Mark
from controller.commands.simulate.decided_text import courses_of
from controller.commands.simulate.scale import Scale, linear
from controller.commands.simulate.wording import moment


def decided_charts(decided: Decided, time: Scale, marks: tuple[Mark, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of the replicas with the marks, of each metric, and of each of several targets."""
    found = courses_of(decided)
    (number, replicas), (asked, recommended) = found.decided, found.recommended
    both = (
        Line(name=number, look="ready", course=replicas, is_stepped=True, is_area=True),
        Line(name=asked, look="wanted", course=recommended, is_stepped=True),
    )
    drawn = [
        (name, (Line(name=name, look="load", course=course, is_stepped=True),), ())
        for name, course in (*found.metrics, *found.targets)
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
