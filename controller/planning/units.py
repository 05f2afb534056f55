"""Units of cost in a placement problem."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from functools import lru_cache

COST_UNIT = Decimal("0.0001")
"""The smallest cost that is distinguished; finer amounts are rounded up."""

MAX_COST = Decimal(1_000_000)
"""Costs are capped at this, so that one absurd number does not drown the differences between all others."""

RESOLUTION = 100
"""Integers per COST_UNIT, so that prices derived from a cost, such as that of a start, are rounded little."""


@lru_cache(maxsize=1024)
def cost_units(cost: Decimal) -> int:
    """Return a cost per hour in integer units, rounded up."""
    return int((min(cost, MAX_COST) / COST_UNIT).to_integral_value(rounding=ROUND_UP)) * RESOLUTION


def cost_of(units: int) -> Decimal:
    """Return the cost per hour for an integer number of units."""
    return (Decimal(units) / RESOLUTION * COST_UNIT).normalize()
