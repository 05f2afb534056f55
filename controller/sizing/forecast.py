"""Forecast arrivals over the start-up time of a replica, with an upper bound.

The trend is a least-squares line through the recent minutes. The bound is that of a prediction interval with
half of the residual variance, because it applies to the mean rate over a start-up, not to that of one
interval. While the history is incomplete, as after a change of the leader, the line is extrapolated over the
same share of the start-up time only: a line through a few samples is steep by chance. A current rate within
the same bound of the line is attributed to chance; one above it may be the beginning of a jump, and counts by
itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

FEWEST = 4
"""Minimum number of samples for a line."""

MOST_GROWTH = 2.0
"""Maximum of the bound relative to the current rate: a line through a jump keeps rising when the load does
not.
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A forecast in requests per second."""

    now: float
    """Current rate: the larger of the last two."""

    upper: float
    """Upper bound of arrivals until replicas that are started now are ready."""

    release: float
    """A higher bound, above which capacity may be removed. The distance keeps noise from reversing a
    decision. Infinite if there are too few samples for a trend: then no capacity may be removed.
    """


def forecast(
    samples: Sequence[tuple[float, float]],
    *,
    ahead_seconds: float,
    history_seconds: float,
    deviations: float,
    release_deviations: float,
) -> Forecast:
    """Return the forecast from (time in seconds, requests per second) samples, oldest first.

    A complete history has samples of `history_seconds`. Raises ValueError without samples.
    """
    if not samples:
        raise ValueError("a forecast needs at least one sample")
    now = max(rate for _, rate in samples[-2:])
    if len(samples) < FEWEST:
        return Forecast(now=now, upper=now, release=math.inf)
    line = _fitted(samples)
    ahead_seconds *= min(1.0, _covered_seconds(samples) / history_seconds)
    ahead, present = line.at(ahead_seconds), line.at(0.0)
    has_jumped = now > present + deviations * line.error(0.0)
    base, most = max(ahead, present, now if has_jumped else 0.0), MOST_GROWTH * now
    error = line.error(ahead_seconds)
    return Forecast(
        now=now,
        upper=min(most, base + deviations * error),
        release=min(most, base + release_deviations * error),
    )


def _covered_seconds(samples: Sequence[tuple[float, float]]) -> float:
    """Return the time that samples cover: each stands for the mean time between two."""
    return (samples[-1][0] - samples[0][0]) * len(samples) / (len(samples) - 1)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Line:
    """A line through samples; times are in seconds relative to the last sample."""

    count: int
    mean_moment: float
    mean_rate: float
    slope: float
    spread: float
    """Sum of squared distances from the mean time; 0 if all samples are of one time."""

    variance: float
    """Residual variance."""

    def at(self, seconds: float) -> float:
        """Return the value of the line."""
        return self.mean_rate + self.slope * (seconds - self.mean_moment)

    def error(self, seconds: float) -> float:
        """Return the standard error of the mean rate over some intervals around a time."""
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
