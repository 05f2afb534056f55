"""Charts over time as inline SVG.

The drawing is stretched to the width that there is; the numbers at its sides are text of the page, so that
they stay readable on a narrow screen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.offline.markup import Markup, tag
from controller.simulating.scale import Scale

MOST_POINTS: Final = 600
"""Of one line. Of longer runs, the greatest value of each stretch is drawn."""

_WIDTH: Final = 1000.0
_HEIGHT: Final = 100.0

Course = Sequence[tuple[float, float | None]]
"""(seconds, value), in order; None where there is no value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Line:
    """One quantity over time. `look` is the CSS class that gives it its colour."""

    name: str
    look: str
    course: Course
    is_stepped: bool = False
    """Whether each value holds until the next one."""

    is_area: bool = False
    """Whether all below it is filled."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """A moment that has something to say: shown under the pointer, and linked to where it is listed."""

    seconds: float
    value: float
    text: str
    anchor: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Some lines over one axis of time. Areas cover each other in their order."""

    title: str
    lines: tuple[Line, ...]
    time: Scale
    values: Scale
    value_text: Callable[[float], str]
    time_text: Callable[[float], str]
    target: float | None = None
    target_text: str = ""
    marks: tuple[Mark, ...] = ()


def drawn(chart: Chart) -> Markup:
    """Return a chart with its title, legend and axes."""
    picture = tag(
        "svg",
        *_background(chart),
        *(tag("path", d=_path(chart, line), class_=_class(line)) for line in chart.lines),
        *_target(chart),
        *(_mark(chart, mark) for mark in chart.marks),
        viewBox=f"0 0 {_WIDTH:g} {_HEIGHT:g}",
        preserveAspectRatio="none",
        role="img",
        aria_label=chart.title,
    )
    values = (
        tag("span", chart.value_text(tick), style=f"bottom:{100 * chart.values.share(tick):.2f}%")
        for tick in chart.values.ticks
    )
    moments = (
        tag("span", chart.time_text(tick), style=f"left:{100 * chart.time.share(tick):.2f}%")
        for tick in chart.time.ticks
    )
    sides = tag("div", *values, class_="ys"), picture, tag("div", *moments, class_="xs")
    return tag("figure", _caption(chart), tag("div", *sides, class_="plot"))


def thinned(course: Course) -> Course:
    """Return at most `MOST_POINTS` points: of each stretch its last moment and its greatest value."""
    size = -(-len(course) // MOST_POINTS)
    if size <= 1:
        return course
    parts = [course[start : start + size] for start in range(0, len(course), size)]
    return [
        (part[-1][0], max((value for _, value in part if value is not None), default=None)) for part in parts
    ]


def _caption(chart: Chart) -> Markup:
    keys = [tag("span", line.name, class_=f"key {_class(line)}") for line in chart.lines]
    if chart.target is not None:
        keys.append(tag("span", chart.target_text, class_="key line target"))
    return tag("figcaption", tag("b", chart.title), *keys)


def _class(line: Line) -> str:
    return f"{'area' if line.is_area else 'line'} {line.look}"


def _background(chart: Chart) -> Iterator[Markup]:
    """Yield what lies behind the lines: the warm-up, which is before 0, and a line at each named value."""
    if chart.time.low < 0:
        yield tag("rect", x=0, y=0, width=_x(chart, 0.0), height=f"{_HEIGHT:g}", class_="unscored")
    levels = "".join(f"M0 {_y(chart, tick)}H{_WIDTH:g}" for tick in chart.values.ticks)
    yield tag("path", d=levels, class_="grid")


def _target(chart: Chart) -> Iterator[Markup]:
    if chart.target is not None:
        yield tag("path", d=f"M0 {_y(chart, chart.target)}H{_WIDTH:g}", class_="line target")


def _mark(chart: Chart, mark: Mark) -> Markup:
    # A line without length and with round ends is a dot whatever the drawing is stretched to.
    place = f"M{_x(chart, mark.seconds)} {_y(chart, mark.value)}h0"
    return tag("a", tag("path", tag("title", mark.text), d=place, class_="mark"), href=f"#{mark.anchor}")


def _path(chart: Chart, line: Line) -> str:
    """Return a line's path: interrupted where there is no value, closed at the bottom where it is an area."""
    return "".join(_piece(chart, line, run) for run in _runs(thinned(line.course)))


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
    x, y = _x(chart, first_seconds), _y(chart, first)
    pieces, start = [f"M{x} {y}"], x
    for seconds, value in rest:
        x, before, y = _x(chart, seconds), y, _y(chart, value)
        if not line.is_stepped:
            pieces.append(f"L{x} {y}")
        elif y != before:
            pieces.append(f"H{x}V{y}")
    if line.is_stepped or not rest:
        pieces.append(f"H{x}")
    if line.is_area:
        pieces.append(f"V{_HEIGHT:g}H{start}Z")
    return "".join(pieces)


def _x(chart: Chart, seconds: float) -> str:
    return f"{_WIDTH * chart.time.share(seconds):.1f}"


def _y(chart: Chart, value: float) -> str:
    return f"{_HEIGHT * (1 - chart.values.share(value)):.1f}"
