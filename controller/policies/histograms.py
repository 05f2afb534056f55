"""Quantiles of the increase of a histogram between two scrapes.

Values are interpolated within a bucket. The last bucket has no upper bound: it is assumed to end at twice its
lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Buckets = Mapping[float, float]
"""Cumulative counts by upper bound."""

_WHOLE_PERCENT = 100


class UncountableError(ValueError):
    """Two scrapes that cannot be of one histogram that only increased."""


def quantile(past: Buckets | None, now: Buckets, percent: int) -> float:
    """Return the percentile of the observations since `past`; 0 without observations.

    Without a past, all observations count. Raises UncountableError.
    """
    gained = sorted(gain(past or {}, now).items())
    total = gained[-1][1] if gained else 0.0
    if total <= 0:
        return 0.0
    rank = math.ceil(total * percent / _WHOLE_PERCENT)
    low, below = 0.0, 0.0
    for bound, count in gained:
        if count >= rank:
            high = 2 * low if math.isinf(bound) else bound
            return high - (count - rank) * (high - low) / (count - below)
        low, below = bound, count
    return low


def gain(past: Buckets, now: Buckets) -> dict[float, float]:
    """Return the increase of each cumulative bucket. Raises UncountableError."""
    if past and past.keys() != now.keys():
        raise UncountableError("the buckets are others than before")
    gained = {bound: count - past.get(bound, 0.0) for bound, count in now.items()}
    counts = [gained[bound] for bound in sorted(gained)]
    if not all(math.isfinite(count) for count in counts):
        raise UncountableError("a count is no finite number")
    if counts and counts[-1] < 0:
        raise UncountableError(f"the count fell by {-counts[-1]:g}")
    if counts != sorted(counts) or (counts and counts[0] < 0):
        raise UncountableError("the buckets are not cumulative")
    return gained
