"""Range checks for the numbers of a record, and units of cost in a placement problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import ROUND_UP, Decimal
from functools import lru_cache

MAX_REPLICAS = 1_000_000
"""Maximum number of replicas that a record may contain."""

MAX_COST = 10**9
"""Maximum cost of one replica that a record may contain."""

MOST_START_SECONDS = 1_000_000
"""Maximum start time of a replica, in seconds."""


def out_of_range(**ranges: tuple[float | Decimal, int, int]) -> list[str]:
    """Return one message for each (value, low, high) whose value is NaN or out of range."""
    return [
        f"{name}: must be between {low} and {high}, was {value}"
        for name, (value, low, high) in ranges.items()
        if math.isnan(value) or not low <= value <= high
    ]


def negative_or_endless(**values: float) -> list[str]:
    """Return one message for each value that is not a finite number of at least 0."""
    return [
        f"{name}: must be finite and at least 0, was {value}"
        for name, value in values.items()
        if not (math.isfinite(value) and value >= 0)
    ]


def bounds_errors(least: int, most: int | None) -> list[str]:
    """Return a message if the maximum of replicas is below the minimum."""
    if most is None or most >= least:
        return []
    return [f"max_replicas: must be at least min_replicas ({least}), was {most}"]


def refuse(wrong: Sequence[str], whose: str = "") -> None:
    """Raise ValueError with all messages about a record, if there are any."""
    if wrong:
        raise ValueError(": ".join(filter(None, (whose, "; ".join(wrong)))))


COST_UNIT = Decimal("0.0001")
"""The smallest cost that is distinguished; finer amounts are rounded up."""

COUNTED_COST = Decimal(1_000_000)
"""Costs are capped at this, so that one absurd number does not drown the differences between all others."""

RESOLUTION = 100
"""Integers per COST_UNIT, so that prices derived from a cost, such as that of a start, are rounded little."""


@lru_cache(maxsize=1024)
def cost_units(cost: Decimal) -> int:
    """Return a cost per hour in integer units, rounded up."""
    return int((min(cost, COUNTED_COST) / COST_UNIT).to_integral_value(rounding=ROUND_UP)) * RESOLUTION


def cost_of(units: int) -> Decimal:
    """Return the cost per hour for an integer number of units."""
    return (Decimal(units) / RESOLUTION * COST_UNIT).normalize()
