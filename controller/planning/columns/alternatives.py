"""The next best option: for each variant its model's best mix in which it has another number of replicas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.pool import pool_of
from controller.planning.columns.running import cheapest_with
from controller.planning.columns.selection import replicas_of
from controller.planning.columns.takings import Takings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Found

    Mix = tuple[tuple[int, int], ...]


def alternatives_to(replicas: Sequence[int], found: Found, resources: Resources) -> tuple[Mix, ...]:
    """Return per variant the cheapest such mix that leaves nothing more uncovered; empty where there is none.

    Mixes are those of a search, whoever found the answer, with what they take at the search's prices.
    """
    pools, columns = found.pools, found.selection.columns
    if tuple(replicas) != tuple(replicas_of(pools, found.selection, len(replicas)).tolist()):
        mixes = [np.array(replicas, dtype=np.int64)[pool.cohort.variants] for pool in pools]
        pools = tuple(
            pool.joined(pool_of(pool.cohort, own[:, None, :])) for pool, own in zip(pools, mixes, strict=True)
        )
        tariffs = Takings(pools, resources).tariffs(found.rows)
        columns = tuple(cheapest_with(*each) for each in zip(pools, tariffs, mixes, strict=True))
    else:
        tariffs = Takings(pools, resources).tariffs(found.rows)
    return _cheapest_others(pools, tariffs, columns, variants=len(replicas))


def _cheapest_others(
    pools: Sequence[Pool], tariffs: Sequence[Floats], chosen: Sequence[Integers], *, variants: int
) -> tuple[Mix, ...]:
    """Return per variant its model's other mix with the least tariff, given columns and tariffs per pool."""
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
