"""Prices of an earlier answer: where the next search begins when little has changed since.

Any prices give a valid bound, so those that no longer fit cost time and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from controller.planning.ranges import negative_or_endless

MOST = 2.0**100
"""No price of a real search comes near to it; sums of larger ones could lose all sense."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelPrices:
    """What one level's search ended with."""

    level: str
    rows: tuple[float, ...]
    """Per shared row: those of slots, then those of limits."""

    caps: tuple[tuple[str, float], ...]
    """(earlier level, price of a unit of its shortfall)."""

    distance: float = 0.0
    """How far above what the prices prove the value stayed after a thorough search, as a share of it (or of a
    tenth of all that is wanted at the level, if that is more)."""

    def __post_init__(self) -> None:
        """Refuse what is no price or distance. Raises ValueError."""
        _check_prices(f"prices of {self.level}", (*self.rows, *(price for _, price in self.caps)))
        _check_prices(f"distance of {self.level}", (self.distance,))


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownPrices:
    """What a whole search ended with."""

    slots: tuple[tuple[int, int, int], ...]
    """(bin, size, pods) of each row of slots."""

    limits: tuple[str, ...]
    """Names of the rows of limits."""

    joint: tuple[float, ...]
    """Per shared row, all levels weighed together."""

    levels: tuple[LevelPrices, ...]

    effort_seconds: float = 0.0
    """How much of the solver's deterministic time a thorough search might take, before it grows with what is
    large; none where prices are of a rough search."""

    def __post_init__(self) -> None:
        """Refuse prices or effort that are none, or prices not one for each row. Raises ValueError."""
        rows = len(self.slots) + len(self.limits)
        _check_prices("joint prices", self.joint)
        wrong = negative_or_endless(effort_seconds=self.effort_seconds)
        if wrong:
            raise ValueError("; ".join(wrong))
        for name, prices in (("joint", self.joint), *((one.level, one.rows) for one in self.levels)):
            if len(prices) != rows:
                raise ValueError(f"{name}: must be one price for each of {rows} rows, was {len(prices)}")


def _check_prices(name: str, prices: tuple[float, ...]) -> None:
    if not all(math.isfinite(price) and 0 <= price <= MOST for price in prices):
        raise ValueError(f"{name}: must be finite and at least 0")
