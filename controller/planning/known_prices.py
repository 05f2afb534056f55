"""Prices of an earlier answer: where the next search begins when little has changed since.

Any prices give a valid bound, so those that no longer fit cost time and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class LevelPrices:
    """What one level's search ended with."""

    level: str
    rows: tuple[float, ...]
    """Per shared row: those of slots, then those of limits."""

    caps: tuple[tuple[str, float], ...]
    """(earlier level, price of a unit of its shortfall)."""


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
