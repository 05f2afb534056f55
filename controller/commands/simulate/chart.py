"""Charts over time: their content, its axes, and its coordinates in a drawing of fixed size."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Final

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_MOST_TICKS: Final = 4
_SPANS_SECONDS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_MOMENTS: Final = 7
_MOST_LOGARITHMIC: Final = 5

MOST_POINTS: Final = 600
"""Maximum points per line. In longer runs, the maximum of each stretch is drawn."""

WIDTH: Final = 1000.0
HEIGHT: Final = 100.0

Course = Sequence[tuple[float, float | None]]
"""(seconds, value) pairs in order; None where there is no value."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Axis:
    """An axis from its lowest to its highest value, with its ticks."""

    low: float
    high: float
    ticks: tuple[float, ...]
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Return the position of a value, from 0 at the low end to 1 at the high end, clamped."""
        value = min(self.high, max(self.low, value))
        if self.is_logarithmic:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


def linear(values: Iterable[float | None], *, least_step: float = 0.0) -> Axis:
    """Return an axis from 0 to a round number above all values, with ticks at least `least_step` apart."""
    most = max((value for value in values if value is not None), default=0.0)
    step = max(
        least_step, _round_above(most / _MOST_TICKS) if most > sys.float_info.min * _MOST_TICKS else 1.0
    )
    count = max(1, math.ceil(most / step - 1e-9))
    return Axis(low=0.0, high=step * count, ticks=tuple(step * number for number in range(count + 1)))


def logarithmic(values: Iterable[float | None]) -> Axis:
    """Return a logarithmic axis between round numbers around all positive values."""
    known = [value for value in values if value is not None and value > 0]
    low, high = (_round_below(min(known)), _round_above(max(known))) if known else (1.0, 10.0)
    if high <= low:
        high = _round_above(2 * low)
    first, last = math.floor(math.log10(low) - 1e-9), math.ceil(math.log10(high) + 1e-9)
    decades = [10.0**power for power in range(first, last + 1)]
    finer = [decade * step for decade in decades for step in _STEPS[:-1]]
    inside = [tick for tick in finer if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    if len(inside) > _MOST_LOGARITHMIC:
        inside = [tick for tick in decades if low * (1 - 1e-9) <= tick <= high * (1 + 1e-9)]
    return Axis(low=low, high=high, ticks=tuple(inside), is_logarithmic=True)


def time_scale(first_seconds: float, last_seconds: float) -> Axis:
    """Return a time axis, with ticks at whole seconds, minutes or hours."""
    last_seconds = max(last_seconds, first_seconds + 1.0)
    length = last_seconds - first_seconds
    step = next((span for span in _SPANS_SECONDS if length / span <= _MOST_MOMENTS), _SPANS_SECONDS[-1])
    ticks = range(math.ceil(first_seconds / step), math.floor(last_seconds / step) + 1)
    return Axis(low=first_seconds, high=last_seconds, ticks=tuple(float(step * number) for number in ticks))


def _round_above(value: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least the value."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(decade * step for step in _STEPS if value <= decade * step * (1 + 1e-9))


def _round_below(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value) + 1e-12)
    return next(decade * step for step in reversed(_STEPS) if value >= decade * step * (1 - 1e-9))


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
class ChartMark:
    """A point with a text, which is shown under the pointer and links to its entry in a list."""

    seconds: float
    value: float
    text: str
    anchor: str


def plain(value: float) -> str:
    """Return a number with at most three decimals."""
    return f"{value:,.3f}".rstrip("0").rstrip(".")


@dataclass(frozen=True, kw_only=True, slots=True)
class Chart:
    """Several lines over one time axis. Later areas cover earlier ones."""

    title: str
    lines: tuple[Line, ...]
    time: Axis
    values: Axis
    value_text: Callable[[float], str] = plain
    target: float | None = None
    target_text: str = ""
    marks: tuple[ChartMark, ...] = ()

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
    """Yield the stretches of a course without gaps."""
    for _, run in groupby(course, lambda point: point[1] is None):
        if points := [(seconds, value) for seconds, value in run if value is not None]:
            yield points


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
