"""Charts of the decisions of a policy over time: recommended and decided replicas, and each metric."""

from __future__ import annotations

from collections.abc import Iterator

from controller.closedloop.decided import Decided
from controller.simulating.chart import Chart, Line, Mark
from controller.simulating.decided_text import courses_of
from controller.simulating.scale import Scale, linear
from controller.simulating.wording import moment


def decided_charts(decided: Decided, time: Scale, marks: tuple[Mark, ...] = ()) -> Iterator[Chart]:
    """Yield a chart of the replicas with the marks, of each metric, and of each of several targets."""
    courses = courses_of(decided)
    recommended, replicas = courses.pop("recommended"), courses.pop("decided")
    both = (
        Line(name="decided", look="ready", course=replicas, is_stepped=True, is_area=True),
        Line(name="recommended", look="wanted", course=recommended, is_stepped=True),
    )
    drawn = [
        (name.strip(), (Line(name=name.strip(), look="load", course=course, is_stepped=True),), ())
        for name, course in courses.items()
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
