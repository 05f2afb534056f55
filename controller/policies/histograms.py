"""Quantiles of what a histogram gained between two looks at it.

A rank within a bucket is interpolated between its bounds. The last bucket has no upper bound: it is taken to
reach to twice its lower one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

Buckets = Mapping[float, float]
"""Cumulative counts by upper bound."""

_WHOLE_PERCENT = 100


class UncountableError(ValueError):
    """Two looks that cannot be those of one histogram that only grew."""


def quantile(past: Buckets | None, now: Buckets, percent: int) -> float:
    """Return the value that so many percent of what came since stayed within; 0 where nothing came.

    Without a past, all of it came since. Raises UncountableError.
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
    """Return what each bucket gained, cumulatively. Raises UncountableError."""
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
