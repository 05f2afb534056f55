"""The decisions of a policy over time, as text: metric values, recommended and decided replicas."""

from __future__ import annotations

from enum import StrEnum
from typing import Final, NamedTuple

from rich.table import Table

from controller.closedloop.decided import Decided
from controller.offline.terminal import styled, table, uncut
from controller.simulating.chart import Course, thinned

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 60


class Kind(StrEnum):
    """What a course shows. Metrics and targets can have any name, also that of another course."""

    METRIC = "metric"
    RECOMMENDED = "recommended"
    DECIDED = "decided"
    TARGET = "target"


_LABELS: Final = {
    Kind.RECOMMENDED: "replicas {}",
    Kind.DECIDED: "replicas {}",
    Kind.TARGET: "  {}",
}
"""Labels of rows. The name of a metric has no space, so it is not mistaken for another row."""


class NamedCourse(NamedTuple):
    """One value over time."""

    kind: Kind
    name: str
    course: Course


def courses_of(decided: Decided) -> list[NamedCourse]:
    """Return each metric, the replicas that the metrics recommend, the decided ones, and those per target.

    A single target has no course of its own. If targets have other capacities, the recommended replicas are
    counted in replicas of capacity 1.
    """
    points = decided.points
    recommended: Course = [(point.seconds, _float(point.recommended)) for point in points]
    replicas: Course = [(point.seconds, float(point.replicas)) for point in points]
    asked = "recommended" if decided.is_alike else "recommended, of capacity 1"
    targets = enumerate(decided.targets if len(decided.targets) > 1 else ())
    return [
        *(
            NamedCourse(Kind.METRIC, name, [(point.seconds, point.values[name]) for point in points])
            for name in (points[0].values if points else ())
        ),
        NamedCourse(Kind.RECOMMENDED, asked, recommended),
        NamedCourse(Kind.DECIDED, "decided", replicas),
        *(
            NamedCourse(Kind.TARGET, name, [(point.seconds, float(point.targets[place])) for point in points])
            for place, name in targets
        ),
    ]


def over_time(decided: Decided) -> Table:
    """Return a table with a row for each course: its least and greatest value, and a drawing."""
    made = table(("OVER TIME", "LEAST", "MOST", ""), words={"OVER TIME", ""})
    for kind, title, course in courses_of(decided):
        name = _LABELS.get(kind, "{}").format(title)
        known = [value for _, value in course if value is not None]
        if not known:
            made.add_row(*map(styled, (name, "not known", "", "")))
            continue
        least, most = min(known), max(known)
        made.add_row(*map(styled, (name, f"{least:.6g}", f"{most:.6g}", sparkline(course, most))))
    return uncut(made)


def sparkline(course: Course, most: float) -> str:
    """Return one character for each stretch of a series, by its maximum; blank where it is unknown."""
    return "".join(_level(value, most) for _, value in thinned(course, _COLUMNS))


def _level(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return _LEVELS[round(value / most * (len(_LEVELS) - 1)) if most > 0 else 0]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
