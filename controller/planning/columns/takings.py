"""What columns take of what is shared, at its prices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources


class Takings:
    """The columns of all models, as far as they take slots and limits."""

    def __init__(self, pools: Sequence[Pool], resources: Resources) -> None:
        classes = len(resources.sizes)
        self._pools = pools
        self._resources = resources
        self.class_of: list[Integers] = [
            np.where(c < 0, classes, c) for c in (p.cohort.place_class for p in pools)
        ]
        """Per pool (n, places): class of each place; one beyond all classes where nothing is taken."""
        self.amounts: list[Floats] = [
            resources.limit_amounts[:, p.cohort.variants].astype(np.float64) for p in pools
        ]
        """Per pool (limit rows, n, w): of a replica."""

    def paid(self, index: int, class_price: Floats, limit_price: Floats) -> Floats:
        """Return what each column of a pool pays for slots and limits, (n, j)."""
        pool = self._pools[index]
        per_new = class_price[self.class_of[index]]
        costs: Floats = np.matmul(pool.asked, per_new[:, :, None])[:, :, 0]
        if len(limit_price):
            per_replica = np.tensordot(limit_price, self.amounts[index], axes=1)
            costs += np.matmul(pool.mixes, per_replica[:, :, None])[:, :, 0]
        return costs

    def tariffs(self, rows: Floats) -> tuple[Floats, ...]:
        """Return what each column costs with what it pays, per pool (n, j)."""
        slots, shared = len(self._resources.slots), len(self._resources.capacity)
        _, class_price = cheapest_bins(self._resources, rows[:slots])
        return tuple(
            pool.cost + self.paid(index, class_price, rows[slots:shared])
            for index, pool in enumerate(self._pools)
        )

    def place_prices(self, rows: Floats) -> list[Floats]:
        """Return what a pod pays at each place of each model, per pool (n, places)."""
        _, class_price = cheapest_bins(self._resources, rows[: len(self._resources.slots)])
        return [class_price[class_of] for class_of in self.class_of]


def cheapest_bins(resources: Resources, slot_prices: Floats) -> tuple[Integers, Floats]:
    """Return for each class the cheapest bin and the price there, and 0 for what has no class."""
    if not resources.allowed.size:
        return np.zeros(len(resources.sizes), dtype=np.int64), np.zeros(len(resources.sizes) + 1)
    price = resources.bin_prices(slot_prices)
    least = price.min(axis=1)
    return price.argmin(axis=1), np.append(np.where(np.isfinite(least), least, 0.0), 0.0)
