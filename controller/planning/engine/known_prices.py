"""Dual prices of each level by row name: earlier ones to start from, and new ones to keep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.planning.engine.shared import Floats, Shared
from controller.planning.warm_start import DualPrices, LevelPrices


class KnownPrices:
    """Prices per unit of a level's value, keyed by row name, because rows differ between problems."""

    def __init__(self, shared: Shared, earlier: DualPrices | None) -> None:
        """Start with the prices of an earlier search, if any."""
        self._names = shared.row_names
        self._earlier = earlier
        self._found: dict[str, LevelPrices] = {}
        self._gaps: dict[str, float] = {one.level: one.gap for one in earlier.levels} if earlier else {}

    def begin(self, level: str, kept: Sequence[str], factor: int) -> Floats | None:
        """Return the earlier prices of a level for its current rows; None if it was not searched.

        `kept` has the earlier levels that have a row; `factor` is that of the level's value in its
        objective.
        """
        if self._earlier is None:
            return None
        own = next((one for one in self._earlier.levels if one.level == level), None)
        if own is None:
            return None
        shared = dict(zip((*self._earlier.slots, *self._earlier.limits), own.rows, strict=True))
        caps = dict(own.kept)
        rows = [shared.get(name, 0.0) for name in self._names]
        return np.array([*rows, *(caps.get(name, 0.0) for name in kept)]) * factor

    def keep(self, level: str, kept: Sequence[str], factor: int, vector: Floats) -> None:
        """Store the final prices of a level for all its rows."""
        prices, rows = (vector / factor).tolist(), len(self._names)
        caps = tuple(zip(kept, prices[rows:], strict=True))
        self._found[level] = LevelPrices(level=level, rows=tuple(prices[:rows]), kept=caps)

    def gap(self, level: str) -> float:
        """Return the smallest gap of a level since a larger core was solved; 0 before."""
        return self._gaps.get(level, 0.0)

    def keep_gap(self, level: str, gap: float) -> None:
        """Store the smallest gap of a level since a larger core was solved."""
        self._gaps[level] = gap

    def all(self) -> DualPrices:
        """Return all stored prices."""
        return DualPrices(
            slots=tuple(name for name in self._names if not isinstance(name, str)),
            limits=tuple(name for name in self._names if isinstance(name, str)),
            levels=tuple(replace(self._found[level], gap=self.gap(level)) for level in sorted(self._found)),
        )
