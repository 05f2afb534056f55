"""The decisions of a policy over time, as text: metric values, recommended and decided replicas."""

from __future__ import annotations

from typing import Final

from rich.table import Table

from controller.closedloop.decided import Decided
from controller.offline.terminal import styled, table, uncut
from controller.simulating.chart import Course

_LEVELS: Final = "▁▂▃▄▅▆▇█"
_COLUMNS: Final = 60


def courses_of(decided: Decided) -> dict[str, Course]:
    """Return each metric, the replicas that the metrics recommend, and the decided ones, by name.

    With several targets, those of each target follow, indented.
    """
    points = decided.points
    courses: dict[str, Course] = {
        name: [(point.seconds, point.values[name]) for point in points]
        for name in (points[0].values if points else ())
    }
    courses["recommended"] = [(point.seconds, _float(point.recommended)) for point in points]
    courses["decided"] = [(point.seconds, float(point.replicas)) for point in points]
    if len(decided.targets) > 1:
        for place, name in enumerate(decided.targets):
            courses[f"  {name}"] = [(point.seconds, float(point.targets[place])) for point in points]
    return courses


def over_time(decided: Decided) -> Table:
    """Return a table with a row for each course: its least and greatest value, and a drawing."""
    made = table(("OVER TIME", "LEAST", "MOST", ""), words={"OVER TIME", ""})
    for name, course in courses_of(decided).items():
        known = [value for _, value in course if value is not None]
        if not known:
            made.add_row(*map(styled, (name, "not known", "", "")))
            continue
        least, most = min(known), max(known)
        made.add_row(*map(styled, (name, f"{least:.6g}", f"{most:.6g}", sparkline(course, most))))
    return uncut(made)


def sparkline(course: Course, most: float) -> str:
    """Return one character for each stretch of a series, by its maximum; blank where it is unknown."""
    size = max(1, -(-len(course) // _COLUMNS))
    stretches = [course[start : start + size] for start in range(0, len(course), size)]
    return "".join(
        _level(max((v for _, v in part if v is not None), default=None), most) for part in stretches
    )


def _level(value: float | None, most: float) -> str:
    if value is None:
        return " "
    return _LEVELS[round(value / most * (len(_LEVELS) - 1)) if most > 0 else 0]


def _float(value: int | None) -> float | None:
    return None if value is None else float(value)
