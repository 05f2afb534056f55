"""The decisions of a policy over time, as text: metric values, recommended and decided replicas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from rich.table import Table

from controller.closedloop.decided import Decided
from controller.commands.plan.terminal import table, uncut, wrapping_text
from controller.commands.simulate.chart import Course, thin

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 60


NamedCourse = tuple[str, Course]


class Courses(NamedTuple):
    """Decisions over time. Metrics and targets can have any name, also that of another course."""

    metrics: Sequence[NamedCourse]
    recommended: NamedCourse
    """What the metrics ask for, in replicas of capacity 1 if targets have other capacities."""

    decided: NamedCourse
    targets: Sequence[NamedCourse]
    """The replicas of each target; empty for a single one."""


def courses_of(decided: Decided) -> Courses:
    """Return each value of the decisions over time."""
    points = decided.points
    asked = "recommended" if decided.is_alike else "recommended, of capacity 1"
    names = points[0].values if points else ()
    targets = decided.targets if len(decided.targets) > 1 else ()
    return Courses(
        metrics=[(name, [(point.seconds, point.values[name]) for point in points]) for name in names],
        recommended=(asked, [(point.seconds, point.recommended) for point in points]),
        decided=("decided", [(point.seconds, point.replicas) for point in points]),
        targets=[
            (name, [(point.seconds, point.targets[place]) for point in points])
            for place, name in enumerate(targets)
        ],
    )


def over_time(decided: Decided) -> Table:
    """Return a table with a row for each course: its least and greatest value, and a drawing."""
    found = courses_of(decided)
    rows = [
        *found.metrics,  # their names have no space, so that they are not mistaken for other rows
        *((f"replicas {name}", course) for name, course in (found.recommended, found.decided)),
        *((f"  {name}", course) for name, course in found.targets),
    ]
    made = table(("OVER TIME", "LEAST", "MOST", ""), words={"OVER TIME", ""})
    for name, course in rows:
        known = [value for _, value in course if value is not None]
        if not known:
            made.add_row(*map(wrapping_text, (name, "not known", "", "")))
            continue
        least, most = min(known), max(known)
        made.add_row(*map(wrapping_text, (name, f"{least:.6g}", f"{most:.6g}", sparkline(course, most))))
    return uncut(made)


def sparkline(course: Course, most: float) -> str:
    """Return one character for each stretch of a series, by its maximum; blank where it is unknown."""
    return "".join(_level(value, most) for _, value in thin(course, _COLUMNS))


def _level(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return _LEVELS[round(value / most * (len(_LEVELS) - 1)) if most > 0 else 0]
