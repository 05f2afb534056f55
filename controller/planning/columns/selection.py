"""A choice of one column for each model, and what it adds up to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.classes import NO_CLASS
from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.known_prices import LevelPrices
    from controller.planning.problem import Proof


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """One column per model, and how many nodes are added."""

    columns: tuple[Integers, ...]
    """Per pool (n,)."""

    added: Integers
    """(growths,)."""

    placed: Integers | None = None
    """(classes, bins): where the new replicas have room, if that is known."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """The answer, in columns."""

    pools: tuple[Pool, ...]
    selection: Selection
    proofs: tuple[Proof, ...]
    rows: Floats
    """(rows,): prices of what is shared, per unit of cost."""

    joint: Floats
    """(rows,): prices of what is shared, all levels weighed together."""

    level_prices: tuple[LevelPrices, ...]
    """Of the levels that were searched."""

    effort_seconds: float = 0.0
    """How much of the solver's deterministic time there was for a thorough search; none for a rough one."""


def level_values(
    pools: Sequence[Pool], resources: Resources, levels: Levels, selection: Selection
) -> list[int]:
    """Return the sums of each level in order, cost last."""
    values = np.zeros(len(levels) + 1, dtype=np.int64)
    for pool, columns in zip(pools, selection.columns, strict=True):
        model = np.arange(len(columns))
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            np.add.at(values, at[at >= 0], pool.shortfalls[stage, model, columns][at >= 0])
        values[-1] += pool.cost[model, columns].sum()
    values[-1] += (resources.growth_price * selection.added).sum()
    return [int(value) for value in values]


def excess_values(pools: Sequence[Pool], levels: Levels, selection: Selection) -> list[int]:
    """Return by how much models exceed their own best at each level: no other offsets it."""
    values = np.zeros(len(levels), dtype=np.int64)
    for pool, columns in zip(pools, selection.columns, strict=True):
        model = np.arange(len(columns))
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            above = np.maximum(pool.shortfalls[stage, model, columns] - pool.least[stage], 0)
            np.add.at(values, at[at >= 0], above[at >= 0])
    return [int(value) for value in values]


def least_values(pools: Sequence[Pool], levels: Levels) -> list[int]:
    """Return what each level comes to when every model is at its best, whatever the others do."""
    values = np.zeros(len(levels), dtype=np.int64)
    for pool in pools:
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            np.add.at(values, at[at >= 0], pool.least[stage][at >= 0])
    return [int(value) for value in values]


def total_values(pools: Sequence[Pool], levels: Levels) -> list[int]:
    """Return what each level comes to when nothing is served."""
    values = np.zeros(len(levels), dtype=np.int64)
    for pool in pools:
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            np.add.at(values, at[at >= 0], pool.unserved[stage][at >= 0])
    return [int(value) for value in values]


def asked_of(pools: Sequence[Pool], selection: Selection, *, classes: int) -> Floats:
    """Return what counts against the most slots, per class."""
    asked = np.zeros(classes + 1)
    for pool, columns in zip(pools, selection.columns, strict=True):
        place_class = np.where(pool.cohort.place_class < 0, classes, pool.cohort.place_class)
        np.add.at(asked, place_class, pool.asked[np.arange(len(columns)), columns])
    return asked[:-1]


def asks_of(pools: Sequence[Pool], selection: Selection) -> dict[tuple[int, int], int]:
    """Return (variant, class) -> new ones, in what the class counts; those that need a place."""
    asks: dict[tuple[int, int], int] = {}
    for pool, columns in zip(pools, selection.columns, strict=True):
        cohort, model = pool.cohort, np.arange(len(columns))
        if pool.new is None:
            new = np.maximum(pool.mixes[model, columns] - cohort.bound, 0) * cohort.units
        else:
            new = pool.new[model, columns]
        for row, place in np.argwhere((new > 0) & (cohort.place_class != NO_CLASS)).tolist():
            variant = int(cohort.variants[row, cohort.origin[place]])
            key = variant, int(cohort.place_class[row, place])
            asks[key] = asks.get(key, 0) + int(new[row, place])
    return asks


def replicas_of(pools: Sequence[Pool], selection: Selection, variants: int) -> Integers:
    """Return the replicas of each variant, (variants,)."""
    replicas = np.zeros(variants, dtype=np.int64)
    for pool, columns in zip(pools, selection.columns, strict=True):
        replicas[pool.cohort.variants] = pool.mixes[np.arange(len(columns)), columns]
    return replicas
