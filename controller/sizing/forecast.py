"""The trend of arrivals over the time that a replica needs to start, with an upper bound.

A straight line by least squares through the last minutes. The bound is that of a prediction interval, with
half of the residual variance: what is bounded is the mean rate over a start-up, not one interval's. A present
rate that is within the same bound of the line is taken for chance; one beyond it may be the beginning of a
jump, and counts by itself.
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
    line = _fitted(samples)
    ahead, present = line.at(ahead_seconds), line.at(0.0)
    has_jumped = now > present + deviations * line.error(0.0)
    base, most = max(ahead, present, now if has_jumped else 0.0), MOST_GROWTH * now
    error = line.error(ahead_seconds)
    return Forecast(
        now=now,
        upper=min(most, base + deviations * error),
        release=min(most, base + release_deviations * error),
        is_young=False,
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line through samples; moments count in seconds from the last one."""

    count: int
    mean_moment: float
    mean_rate: float
    slope: float
    spread: float
    """Sum of squared distances from the mean moment; 0 where all samples are of one moment."""

    variance: float
    """Of what the line leaves unexplained."""

    def at(self, seconds: float) -> float:
        """Return the line's value."""
        return self.mean_rate + self.slope * (seconds - self.mean_moment)

    def error(self, seconds: float) -> float:
        """Return the standard error of the mean rate of some intervals around a moment."""
        distance = (seconds - self.mean_moment) ** 2 / self.spread if self.spread else 0.0
        return math.sqrt(self.variance * (0.5 + 1.0 / self.count + distance))


def _fitted(samples: Sequence[tuple[float, float]]) -> _Line:
    count, last = len(samples), samples[-1][0]
    mean_x = sum([moment - last for moment, _ in samples]) / count
    mean_y = sum([rate for _, rate in samples]) / count
    spread = sum([(moment - last - mean_x) ** 2 for moment, _ in samples])
    if not spread:
        return _Line(count=count, mean_moment=0.0, mean_rate=mean_y, slope=0.0, spread=0.0, variance=0.0)
    slope = sum([(moment - last - mean_x) * (rate - mean_y) for moment, rate in samples]) / spread
    residual = sum([(rate - mean_y - slope * (moment - last - mean_x)) ** 2 for moment, rate in samples])
    return _Line(
        count=count,
        mean_moment=mean_x,
        mean_rate=mean_y,
        slope=slope,
        spread=spread,
        variance=residual / (count - 2),
    )
