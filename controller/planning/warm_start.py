"""Dual prices of an earlier answer: where the next search begins when little has changed since.

Any prices give a valid bound, so those that no longer fit cost time and nothing else.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST = 2.0**100
"""No price of a real search comes near to it; sums of larger ones could not be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelPrices:
    """Prices that bounded one level."""

    level: str
    rows: tuple[float, ...]
    """Per shared row: those of slots, then those of limits."""

    kept: tuple[tuple[str, float], ...]
    """(earlier level, price of a unit of its shortfall)."""

    def __post_init__(self) -> None:
        """Refuse what is no price. Raises ValueError."""
        if not all(math.isfinite(p) and 0 <= p <= MOST for p in (*self.rows, *(q for _, q in self.kept))):
            raise ValueError(f"prices of {self.level}: must be finite and at least 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class DualPrices:
    """Prices that a whole search ended with."""

    slots: tuple[tuple[int, int, int], ...]
    """(bin, size, pods) of each row of slots."""

    limits: tuple[str, ...]
    """Names of the rows of limits."""

    levels: tuple[LevelPrices, ...]

    def __post_init__(self) -> None:
        """Refuse prices that are not one for each row. Raises ValueError."""
        rows = len(self.slots) + len(self.limits)
        for one in self.levels:
            if len(one.rows) != rows:
                raise ValueError(
                    f"{one.level}: must be one price for each of {rows} rows, was {len(one.rows)}"
                )
