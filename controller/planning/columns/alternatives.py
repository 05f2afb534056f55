"""The next best option: for each variant its model's best mix in which it has another number of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.pool import Pool

    Mix = tuple[tuple[int, int], ...]


def alternatives(
    pools: Sequence[Pool], tariffs: Sequence[Floats], chosen: Sequence[Integers], *, variants: int
) -> tuple[Mix, ...]:
    """Return per variant the cheapest such mix that leaves nothing more uncovered; empty where there is none.

    A tariff is what each column costs with what it takes at the prices, per pool (n, j); the columns that are
    chosen are per pool (n,).
    """
    found: list[Mix] = [()] * variants
    for pool, tariff, columns in zip(pools, tariffs, chosen, strict=True):
        eligible, names = _serves_as_well(pool, columns), pool.cohort.variants.tolist()
        models = np.arange(len(columns))
        for position in range(pool.mixes.shape[2]):
            held = pool.mixes[models, columns, position]
            other = eligible & (pool.mixes[:, :, position] != held[:, None])
            best = np.where(other, tariff, np.inf).argmin(axis=1)
            mixes = pool.mixes[models, best].tolist()
            for model in np.flatnonzero(other[models, best]).tolist():
                found[names[model][position]] = tuple(zip(names[model], mixes[model], strict=True))
    return tuple(found)


def _serves_as_well(pool: Pool, columns: Integers) -> Booleans:
    """(n, j): whether a column leaves no more uncovered at any stage than the chosen, and could have room.

    That is room if everybody else went; whether there is any beside them is what its price is for.
    """
    chosen = pool.shortfalls[:, np.arange(len(columns)), columns]
    as_well: Booleans = np.all(pool.shortfalls <= chosen[:, :, None], axis=0)
    has_room: Booleans = np.all(pool.mixes <= pool.cohort.useful[:, None, :], axis=2)
    return has_room & as_well & ~pool.homeless
