"""The trend of arrivals over the time that a replica needs to start, with an upper bound.

A straight line by least squares through the last minutes. The bound is that of a prediction interval, with
half of the residual variance: what is bounded is the mean rate over a start-up, not one interval's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 4
"""Samples for a line."""

MOST_GROWTH = 2.0
"""How many times the present rate the bound is at most: a line through a jump goes on rising when the load
does not."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """Requests per second."""

    now: float
    """The larger of the last two rates."""

    upper: float
    """Bound of what arrives until replicas that are started now are ready."""

    release: float
    """A higher bound: capacity beyond it may go. The distance keeps noise from reversing a decision."""

    is_young: bool
    """Whether there are too few samples for a trend: then nothing goes."""


def forecast(
    samples: Sequence[tuple[float, float]],
    *,
    ahead_seconds: float,
    deviations: float,
    release_deviations: float,
) -> Forecast:
    """Return the forecast from (moment in seconds, requests per second), oldest first.

    Raises ValueError without a sample.
    """
    if not samples:
        raise ValueError("a forecast needs at least one sample")
    now = max(rate for _, rate in samples[-2:])
    if len(samples) < FEWEST:
        return Forecast(now=now, upper=now, release=math.inf, is_young=True)
    line, error = _line(samples, ahead_seconds)
    base, most = max(now, line), MOST_GROWTH * now
    return Forecast(
        now=now,
        upper=min(most, base + deviations * error),
        release=min(most, base + release_deviations * error),
        is_young=False,
    )


def _line(samples: Sequence[tuple[float, float]], ahead_seconds: float) -> tuple[float, float]:
    """Return the line's value so far ahead of the last sample, and the standard error there."""
    count, last = len(samples), samples[-1][0]
    mean_x = sum([moment - last for moment, _ in samples]) / count
    mean_y = sum([rate for _, rate in samples]) / count
    spread = sum([(moment - last - mean_x) ** 2 for moment, _ in samples])
    if not spread:
        return mean_y, 0.0
    slope = sum([(moment - last - mean_x) * (rate - mean_y) for moment, rate in samples]) / spread
    residual = sum([(rate - mean_y - slope * (moment - last - mean_x)) ** 2 for moment, rate in samples])
    distance = (ahead_seconds - mean_x) ** 2 / spread
    error = math.sqrt(residual / (count - 2) * (0.5 + 1.0 / count + distance))
    return mean_y + slope * (ahead_seconds - mean_x), error
