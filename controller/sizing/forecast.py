"""Forecast arrivals over the start-up time of a replica, with an upper bound.

The mean of the last two minutes, plus a bound from the spread of the last ten. A trend has no value here: on
recorded traces, the mean has less pinball loss one to seven minutes ahead than a line, damped or not, or a
moving average.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

MEAN_TICKS: Final = 8
"""Number of samples whose mean is the present rate."""

SPREAD_TICKS: Final = 40
"""Number of samples whose standard deviation counts."""

DEVIATIONS: Final = 1.645
"""Standard deviations of the bound: those of a probability of 95 percent."""

_SHARE_OF_SPREAD: Final = math.sqrt(0.75)
"""Standard deviation of a mean over a start-up around the present rate, relative to that of samples."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Forecast:
    """A forecast in requests per second."""

    now: float
    """Present rate."""

    upper: float
    """Upper bound of the rate until replicas that are started now are ready."""


def forecast(rates: Sequence[float]) -> Forecast:
    """Return the forecast from rates in requests per second, oldest first.

    Raises ValueError without rates.
    """
    if not rates:
        raise ValueError("a forecast needs at least one rate")
    recent = rates[-MEAN_TICKS:]
    mean = sum(recent) / len(recent)
    latest = min(rates[-2:])
    now = max(mean, latest)
    # Higher rates from before are of a load that is over, and no deviation from the present one.
    most = max(recent)
    wide = [min(rate, most) for rate in rates[-SPREAD_TICKS:]]
    center = sum(wide) / len(wide)
    spread = math.sqrt(sum([(rate - center) ** 2 for rate in wide]) / max(1, len(wide) - 1))
    return Forecast(now=now, upper=max(now, mean + DEVIATIONS * _SHARE_OF_SPREAD * spread))
