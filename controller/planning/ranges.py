"""Numbers that a record accepts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

MAX_REPLICAS = 1_000_000
"""The largest number of replicas that anything here may name."""

MOST_START_SECONDS = 1_000_000
"""The longest start of a replica that anything here may name."""


def out_of_range(**ranges: tuple[float | Decimal, int, int]) -> list[str]:
    """Return one sentence for each (value, low, high) whose value is not a number or not within."""
    return [
        f"{name}: must be between {low} and {high}, was {value}"
        for name, (value, low, high) in ranges.items()
        if math.isnan(value) or not low <= value <= high
    ]


def negative_or_endless(**values: float) -> list[str]:
    """Return one sentence for each value that is not a number, not finite or below 0."""
    return [
        f"{name}: must be finite and at least 0, was {value}"
        for name, value in values.items()
        if not (math.isfinite(value) and value >= 0)
    ]
