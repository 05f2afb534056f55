"""Percentiles of measured values."""

from __future__ import annotations

import math
from collections.abc import Sequence


def percentile(values: Sequence[float], percent: float) -> float:
    """Return the smallest value that at least so many percent of all are not above (nearest rank).

    Raises ValueError for no values, or a percentage outside 0 to 100.
    """
    if not values:
        raise ValueError("no values: there is no percentile of nothing")
    if not 0 <= percent <= 100:  # noqa: PLR2004 (a percentage)
        raise ValueError(f"{percent} is no percentage")
    rank = max(math.ceil(len(values) * percent / 100), 1)
    return sorted(values)[rank - 1]
