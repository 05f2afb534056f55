"""Numbers that a record accepts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from decimal import Decimal

MAX_REPLICAS = 1_000_000
"""The largest number of replicas that anything here may name."""


def out_of_range(**ranges: tuple[float | Decimal, int, int]) -> list[str]:
    """Return one sentence for each (value, low, high) whose value is not a number or not within."""
    return [
        f"{name}: must be between {low} and {high}, was {value}"
        for name, (value, low, high) in ranges.items()
        if math.isnan(value) or not low <= value <= high
    ]
