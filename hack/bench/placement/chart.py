"""Two pictures in SVG, written by hand: a plotting library would be the largest thing that is installed."""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from html import escape
from typing import Final

from hack.bench.placement.outcome import Outcome
from hack.fleets.score import COST

_WIDTH, _HEIGHT = 860, 460
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 160, 40, 60
_COLOURS: Final = ("#0b7285", "#e8590c", "#5f3dc4", "#2b8a3e", "#c2255c", "#495057", "#f59f00")
_LEAST_SECONDS: Final = 1e-3

Points = Mapping[str, Mapping[float, float]]
"""(x, y) by series."""


def time_chart(outcomes: Sequence[Outcome]) -> str:
    """Return CPU time by the number of models, both in powers of ten: the median of all families."""
    spent: dict[str, dict[float, list[float]]] = {}
    for one in outcomes:
        if one.cpu_seconds:
            sizes = spent.setdefault(one.engine, {})
            sizes.setdefault(one.instance.size, []).append(statistics.median(one.cpu_seconds))
    points = {
        engine: {size: max(_LEAST_SECONDS, statistics.median(seconds)) for size, seconds in sizes.items()}
        for engine, sizes in spent.items()
    }
    return _svg("CPU seconds of one placement, by models", _lines(points))


def cost_chart(outcomes: Sequence[Outcome], *, ours: str) -> str:
    """Return what others pay beyond ours, by family at the largest size, wherever they serve the same."""
    own = {one.instance: one for one in outcomes if one.engine == ours and one.levels}
    excess: dict[str, dict[str, list[float]]] = {}
    for one in outcomes:
        mine = own.get(one.instance)
        if mine is None or one.engine == ours or not one.levels or not mine.levels[COST]:
            continue
        if {**one.levels, COST: 0} == {**mine.levels, COST: 0}:
            percent = 100 * (one.levels[COST] / mine.levels[COST] - 1)
            excess.setdefault(one.instance.family, {}).setdefault(one.engine, []).append(percent)
    means = {
        family: {engine: statistics.mean(values) for engine, values in engines.items()}
        for family, engines in excess.items()
    }
    return _svg(f"Cost beyond that of {ours}, %, where the same is served", _bars(means))


def _svg(title: str, body: Iterator[str]) -> str:
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" font-family="sans-serif"'
    )
    return "\n".join(
        [
            f'{head} font-size="12">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            _text(_LEFT, _TOP / 2, title, size=15),
            *body,
            "</svg>\n",
        ]
    )


def _lines(points: Points) -> Iterator[str]:
    """Yield one line per series in a frame of powers of ten."""
    xs = [math.log10(x) for series in points.values() for x in series]
    ys = [math.log10(y) for series in points.values() for y in series.values()]
    if not xs:
        return
    low, high = math.floor(min(ys)), math.ceil(max(ys) + 1e-9)
    across = _scale(min(xs), max(xs), _LEFT, _WIDTH - _RIGHT)
    up = _scale(low, high, _HEIGHT - _BOTTOM, _TOP)
    for power in range(low, high + 1):
        yield _rule(up(power))
        yield _text(_LEFT - 8, up(power) + 4, f"{10.0**power:g}", anchor="end")
    for x in sorted({x for series in points.values() for x in series}):
        yield _text(across(math.log10(x)), _HEIGHT - _BOTTOM + 18, f"{x:g}", anchor="middle")
    for index, (name, series) in enumerate(points.items()):
        colour = _COLOURS[index % len(_COLOURS)]
        path = [(across(math.log10(x)), up(math.log10(y))) for x, y in sorted(series.items())]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in path)
        yield f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="2"/>'
        yield from (f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in path)
        yield _legend(index, name)


def _bars(values: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield a group of bars per family, one bar per engine."""
    engines = sorted({engine for group in values.values() for engine in group})
    most = max((value for group in values.values() for value in group.values()), default=0.0)
    up = _scale(0.0, max(most, 1.0), _HEIGHT - _BOTTOM, _TOP)
    for fifth in range(6):
        value = max(most, 1.0) * fifth / 5
        yield _rule(up(value))
        yield _text(_LEFT - 8, up(value) + 4, f"{value:.3g}", anchor="end")
    room = (_WIDTH - _LEFT - _RIGHT) / max(1, len(values))
    width = 0.8 * room / max(1, len(engines))
    for place, (family, group) in enumerate(values.items()):
        for index, engine in enumerate(engines):
            if engine in group:
                top = up(max(0.0, group[engine]))
                yield (
                    f'<rect x="{_LEFT + place * room + index * width:.1f}" y="{top:.1f}" width="{width:.1f}"'
                    f' height="{_HEIGHT - _BOTTOM - top:.1f}" fill="{_COLOURS[index % len(_COLOURS)]}"/>'
                )
        y = _HEIGHT - _BOTTOM + 16 + 13 * (place % 3)
        yield _text(_LEFT + (place + 0.4) * room, y, family, size=10, anchor="middle")
    yield from (_legend(index, engine) for index, engine in enumerate(engines))


def _scale(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    span = (high - low) or 1.0
    return lambda value: start + (value - low) / span * (end - start)


def _rule(y: float) -> str:
    return f'<line x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#dee2e6"/>'


def _legend(index: int, name: str) -> str:
    x, y = _WIDTH - _RIGHT + 16, _TOP + 20 * index
    colour = _COLOURS[index % len(_COLOURS)]
    return f'<rect x="{x}" y="{y}" width="12" height="12" fill="{colour}"/>{_text(x + 18, y + 10, name)}'


def _text(x: float, y: float, text: str, *, size: int = 12, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" text-anchor="{anchor}">{escape(text)}</text>'
