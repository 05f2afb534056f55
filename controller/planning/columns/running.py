"""What to begin from where little has changed: what runs, and what a few models would rather have."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.earlier import Earlier
    from controller.planning.columns.pool import Pool


MOVERS_SHARE = 0.05
FEWEST_MOVERS = 16
"""How many models, as a share of all and at least, may begin with what is best for them at the prices."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Running:
    """What an earlier search ended with, and the replicas to begin from."""

    earlier: Earlier
    replicas: Integers
    """(variants,)."""

    is_brief: bool = False
    """Whether to be as near to the bound as the earlier search was is near enough."""

    def tolerated(self, level: int) -> float | None:
        """Return how far from its bound a level may stay; None where it has to be searched thoroughly."""
        return self.earlier.distance(level) if self.is_brief else None

    def mixes(self, pools: Sequence[Pool]) -> list[Integers]:
        """Return the mix of each model, within its bounds; per pool (n, w)."""
        return [
            np.clip(self.replicas[pool.cohort.variants], pool.cohort.lower, pool.cohort.upper)
            for pool in pools
        ]


@dataclass(frozen=True, kw_only=True, slots=True)
class Beginning:
    """Where a search begins: with the mixes that run, or with a divisible answer made whole."""

    mixes: Sequence[Integers] | None = None
    """Per pool (n, w)."""

    drawn: Sequence[Integers] | None = None
    """Columns per pool (n,), see `Market.drawn`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Wishes:
    """What a search that knows an earlier one begins with; columns per pool (n,)."""

    kept: tuple[Integers, ...]
    """The cheapest way in which each model keeps the mix that it has."""

    wanted: tuple[Integers, ...]
    """The same, but what is cheapest at the prices for the models that would gain most by it: their demand
    has probably changed."""


def wishes(pools: Sequence[Pool], reduced: Sequence[Floats], mixes: Sequence[Integers]) -> Wishes:
    """Return the columns to begin with, given what each costs at the prices, and the mixes that run."""
    best = [costs.argmin(axis=1) for costs in reduced]
    kept = [cheapest_with(pool, costs, own) for pool, costs, own in zip(pools, reduced, mixes, strict=True)]
    gains = [
        costs[row, own] - costs[row, other]
        for costs, own, other in zip(reduced, kept, best, strict=True)
        for row in [np.arange(len(own))]
    ]
    least = _threshold(np.concatenate(gains))
    wanted = [np.where(gain >= least, other, own) for gain, other, own in zip(gains, best, kept, strict=True)]
    return Wishes(kept=tuple(kept), wanted=tuple(wanted))


def cheapest_with(pool: Pool, costs: Floats, mixes: Integers) -> Integers:
    """Return the cheapest column that has a mix, or the cheapest of all, (n,)."""
    same: Booleans = (pool.mixes == mixes[:, None, :]).all(axis=2)
    possible = np.where(same, costs, np.inf)
    found = np.isfinite(possible.min(axis=1))
    kept: Integers = np.where(found, possible.argmin(axis=1), costs.argmin(axis=1))
    return kept


def _threshold(gains: Floats) -> float:
    """Return the least gain of those who may move."""
    most = max(FEWEST_MOVERS, round(MOVERS_SHARE * len(gains)))
    if most >= len(gains):
        return 0.0
    return max(float(np.partition(gains, -most)[-most]), np.finfo(float).tiny)
