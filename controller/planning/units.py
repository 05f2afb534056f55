"""In what units a placement problem counts."""

from __future__ import annotations

from decimal import ROUND_UP, Decimal
from functools import lru_cache

COST_UNIT = Decimal("0.0001")
"""The finest cost that counts; what is finer is rounded up."""

MAX_COST = Decimal(1_000_000)
"""What is dearer counts as this much, lest one absurd number drown the differences between all others."""

PERCENT = 100
"""Costs are counted in hundredths of the finest, so that a percentage of a cost is whole."""


@lru_cache(maxsize=1024)
def cost_units(cost: Decimal) -> int:
    """Return a cost per hour in whole units, rounded up."""
    return int((min(cost, MAX_COST) / COST_UNIT).to_integral_value(rounding=ROUND_UP)) * PERCENT


def cost_of(units: int) -> Decimal:
    """Return a cost per hour from whole units."""
    return (Decimal(units) / PERCENT * COST_UNIT).normalize()
