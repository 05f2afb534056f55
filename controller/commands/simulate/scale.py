"""Chart axes: the position of a value between the ends of its axis, and the ticks."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

_STEPS: Final = (1.0, 2.0, 5.0, 10.0)
_MOST_TICKS: Final = 4
_SPANS_SECONDS: Final = (1, 5, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400)
_MOST_MOMENTS: Final = 7
_MOST_LOGARITHMIC: Final = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class Scale:
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


def linear(values: Iterable[float | None], *, least_step: float = 0.0) -> Scale:
    """Return an axis from 0 to a round number above all values, with ticks at least `least_step` apart."""
    most = max((value for value in values if value is not None), default=0.0)
    step = max(
        least_step, _round_above(most / _MOST_TICKS) if most > sys.float_info.min * _MOST_TICKS else 1.0
    )
    count = max(1, math.ceil(most / step - 1e-9))
    return Scale(low=0.0, high=step * count, ticks=tuple(step * number for number in range(count + 1)))


def logarithmic(values: Iterable[float | None]) -> Scale:
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
    return Scale(low=low, high=high, ticks=tuple(inside), is_logarithmic=True)


def moments(first_seconds: float, last_seconds: float) -> Scale:
    """Return a time axis, with ticks at whole seconds, minutes or hours."""
    last_seconds = max(last_seconds, first_seconds + 1.0)
    length = last_seconds - first_seconds
    step = next((span for span in _SPANS_SECONDS if length / span <= _MOST_MOMENTS), _SPANS_SECONDS[-1])
    ticks = range(math.ceil(first_seconds / step), math.floor(last_seconds / step) + 1)
    return Scale(low=first_seconds, high=last_seconds, ticks=tuple(float(step * number) for number in ticks))


def _round_above(value: float) -> float:
    """Return the smallest of 1, 2 and 5 times a power of ten that is at least the value."""
    decade = 10.0 ** math.floor(math.log10(value))
    return next(decade * step for step in _STEPS if value <= decade * step * (1 + 1e-9))


def _round_below(value: float) -> float:
    decade = 10.0 ** math.floor(math.log10(value) + 1e-12)
    return next(decade * step for step in reversed(_STEPS) if value >= decade * step * (1 - 1e-9))
