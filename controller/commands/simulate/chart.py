"""Charts over time: their content, and its coordinates in a drawing of fixed size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.commands.simulate.scale import Scale

MOST_POINTS: Final = 600
"""Maximum points per line. In longer runs, the maximum of each stretch is drawn."""

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0

Course = Sequence[tuple[float, float | None]]
"""(seconds, value) pairs in order; None where there is no value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One quantity over time. `look` is the CSS class that determines its color."""

    name: str
    look: str
    course: Course
    is_stepped: bool = False
    """Whether each value holds until the next one."""

    is_area: bool = False
    """Whether the area below it is filled."""

    @property
    def css(self) -> str:
        """Its CSS classes."""
        return f"{'area' if self.is_area else 'line'} {self.look}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A point with a text, which is shown under the pointer and links to its entry in a list."""

    seconds: float
    value: float
    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Several lines over one time axis. Later areas cover earlier ones."""

    title: str
    lines: tuple[Line, ...]
    time: Scale
    values: Scale
    value_text: Callable[[float], str]
    time_text: Callable[[float], str]
    target: float | None = None
    target_text: str = ""
    marks: tuple[Mark, ...] = ()

    def x(self, seconds: float) -> str:
        """Return the x coordinate of a time."""
        return f"{WIDTH * self.time.share(seconds):.1f}"

    def y(self, value: float) -> str:
        """Return the y coordinate of a value."""
        return f"{HEIGHT * (1 - self.values.share(value)):.1f}"

    def path(self, line: Line) -> str:
        """Return a line's SVG path: interrupted where values are missing, and closed below for areas."""
        return "".join(_piece(self, line, run) for run in _runs(thin(line.course)))


def thin(course: Course, most: int = MOST_POINTS) -> Course:
    """Return at most `most` points: the last time and the maximum value of each stretch."""
    size = -(-len(course) // most)
    if size <= 1:
        return course
    parts = [course[start : start + size] for start in range(0, len(course), size)]
    return [
        (part[-1][0], max((value for _, value in part if value is not None), default=None)) for part in parts
    ]


def _runs(course: Course) -> Iterator[list[tuple[float, float]]]:
    run: list[tuple[float, float]] = []
    for seconds, value in course:
        if value is not None:
            run.append((seconds, value))
        elif run:
            yield run
            run = []
    if run:
        yield run


def _piece(chart: Chart, line: Line, run: Sequence[tuple[float, float]]) -> str:
    (first_seconds, first), *rest = run
    x, y = chart.x(first_seconds), chart.y(first)
    pieces, start = [f"M{x} {y}"], x
    for seconds, value in rest:
        x, before, y = chart.x(seconds), y, chart.y(value)
        if not line.is_stepped:
            pieces.append(f"L{x} {y}")
        elif y != before:
            pieces.append(f"H{x}V{y}")
    if line.is_stepped or not rest:
        pieces.append(f"H{x}")
    if line.is_area:
        pieces.append(f"V{HEIGHT:g}H{start}Z")
    return "".join(pieces)
