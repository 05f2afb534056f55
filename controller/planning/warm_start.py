"""Dual prices of an earlier solution, with which the next search starts.

Any nonnegative prices give a valid bound, so outdated ones cost time only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

MOST = 2.0**100
"""Maximum price. Prices of a real search are far below it; sums of larger ones could not be compared."""


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelPrices:
    """Dual prices that bound one level."""

    level: str
    rows: tuple[float, ...]
    """Price of each shared row: slot rows, then limit rows."""

    kept: tuple[tuple[str, float], ...]
    """(earlier level, price per unit of its shortfall)."""

    def __post_init__(self) -> None:
        """Reject invalid numbers. Raises ValueError."""
        numbers = (*self.rows, *(price for _, price in self.kept))
        if not all(math.isfinite(number) and 0 <= number <= MOST for number in numbers):
            raise ValueError(f"prices of {self.level}: must be finite and at least 0")


@dataclass(frozen=True, kw_only=True, slots=True)
class DualPrices:
    """Final dual prices of a complete search."""

    slots: tuple[tuple[int, int, int], ...]
    """(bin, size, pods) of each slot row."""

    limits: tuple[str, ...]
    """Names of the limit rows."""

    levels: tuple[LevelPrices, ...]

    def __post_init__(self) -> None:
        """Require one price for each row. Raises ValueError."""
        rows = len(self.slots) + len(self.limits)
        for one in self.levels:
            if len(one.rows) != rows:
                raise ValueError(
                    f"{one.level}: must be one price for each of {rows} rows, was {len(one.rows)}"
                )
