"""One level of the lexicographic order as a problem of its own: what counts, and what earlier ones forbid."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import EXACT_LIMIT, Stage

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Selection


FORBIDDEN = np.inf
"""Objective of a column that an earlier level rules out."""


MOST_RATIO = 30.0
"""How much more a model counts than one of the next level, where all levels are weighed together."""

WEIGHT_RANGE = 1e6
"""How far apart the weights of the first and the last level may be: the numbers have to stay comparable."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Phase:
    """What to minimise over the columns, and which sums of shortfalls must not grow."""

    level: int
    """Index of the level; the one after the last is cost."""

    objectives: tuple[Floats, ...]
    """Per pool (n, j): whole numbers, or FORBIDDEN."""

    capped: tuple[int, ...]
    """Earlier levels whose shortfall is not at its least for each model alone."""

    caps: Integers
    """(capped,): the sums that they must not exceed."""

    capped_shortfalls: tuple[tuple[tuple[Integers, Integers], ...], ...]
    """Per pool and capped level: (models (m,), their shortfalls (m, j))."""

    capacity: Floats
    """(rows,): of slots and limits, then the caps."""

    growth_price: Floats
    """(growths,): free unless cost is what counts."""

    unit: int
    """What one unit of the level's value counts for: more than one where disruption breaks ties."""

    tie: int
    """What disruption comes to at most."""

    def value(self, selection: Selection) -> float:
        """Return what a selection counts for."""
        counted = sum(
            float(objective[np.arange(len(columns)), columns].sum())
            for objective, columns in zip(self.objectives, selection.columns, strict=True)
        )
        return counted + float((self.growth_price * selection.added).sum())


def phase(
    pools: Sequence[Pool],
    resources: Resources,
    levels: Levels,
    *,
    level: int,
    values: Sequence[int],
    excess: Sequence[int],
) -> Phase:
    """Return the problem of one level, given what all levels before it come to, and beyond each model's best.

    Where every model is at its best, other columns are ruled out. Elsewhere the sum is kept by a row.
    """
    capped = capped_levels(excess, level)
    settled = [index for index in range(level) if index not in capped]
    caps = np.array([values[index] for index in capped], dtype=np.int64)
    is_cost = level == len(levels)
    unit, tie = _unit(pools) if is_cost else (1, 0)
    return Phase(
        level=level,
        objectives=tuple(
            _objective(pool, level=None if is_cost else level, unit=unit, settled=settled) for pool in pools
        ),
        capped=capped,
        caps=caps,
        capped_shortfalls=tuple(tuple(_at_level(pool, index) for index in capped) for pool in pools),
        capacity=np.concatenate([resources.capacity, caps]).astype(np.float64),
        growth_price=(resources.growth_price * (unit if is_cost else 0)).astype(np.float64),
        unit=unit,
        tie=tie,
    )


def capped_levels(excess: Sequence[int], level: int) -> tuple[int, ...]:
    """Return the levels before one whose sums are kept by a row: somebody is not at its best there."""
    return tuple(index for index in range(level) if excess[index])


def _unit(pools: Sequence[Pool]) -> tuple[int, int]:
    """Return what a unit of cost counts for, so as not to give way to disruption, and the most of that."""
    most_disturbed = sum(int(pool.disturbed.max(axis=1).sum()) for pool in pools)
    most_cost = sum(int(pool.cost.max(axis=1).sum()) for pool in pools)
    return max(1, min(most_disturbed + 1, EXACT_LIMIT // (4 * (most_cost + 1)))), most_disturbed


def weighted(pools: Sequence[Pool], resources: Resources, levels: Levels) -> Phase:
    """Return all levels as one problem: each counts so much more than the next that it hardly ever gives way.

    Not quite the lexicographic order, whose weights no number could hold, but near enough to begin with.
    """
    weights = level_weights(pools, levels)
    objectives = []
    for pool in pools:
        counted = pool.cost.astype(np.float64)
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            counted += np.append(weights, 0.0)[at][:, None] * pool.shortfalls[stage]
        counted[pool.repeated | pool.homeless] = FORBIDDEN
        objectives.append(np.rint(counted))
    return Phase(
        level=len(levels),
        objectives=tuple(objectives),
        capped=(),
        caps=np.zeros(0, dtype=np.int64),
        capped_shortfalls=tuple(() for _ in pools),
        capacity=resources.capacity.astype(np.float64),
        growth_price=resources.growth_price.astype(np.float64),
        unit=1,
        tie=0,
    )


def combined(first: Phase, times: float, rest: Phase) -> Phase:
    """Return a problem in which one counts so many times beside another, as the first has it."""
    return replace(
        first,
        objectives=tuple(
            times * one + other for one, other in zip(first.objectives, rest.objectives, strict=True)
        ),
        growth_price=times * first.growth_price + rest.growth_price,
    )


def in_small_numbers(phase: Phase, resources: Resources) -> tuple[Phase, float]:
    """Return about the same problem in numbers whose sums are exact, and what one of them is worth.

    What is rounded makes no more than half of one for each model and node.
    """
    possible = [np.where(np.isfinite(objective), objective, 0.0) for objective in phase.objectives]
    most = sum(float(objective.max(axis=1).sum()) for objective in possible)
    most += float((phase.growth_price * resources.growth_limit).sum())
    worth = max(1.0, most / EXACT_LIMIT)
    small = replace(
        phase,
        objectives=tuple(np.rint(objective / worth) for objective in phase.objectives),
        growth_price=np.rint(phase.growth_price / worth),
    )
    return small, worth


def level_weights(pools: Sequence[Pool], levels: Levels) -> Floats:
    """Return what a unit of shortfall counts for at each level: a model of it outweighs some of the next."""
    served, models = np.zeros(len(levels) + 1), np.zeros(len(levels) + 1)
    for pool in pools:
        for stage in Stage:
            at = pool.cohort.levels[:, stage]
            np.add.at(served, at, pool.shortfalls[stage].max(axis=1))
            np.add.at(models, at, 1)
    per_model = np.maximum(served / np.maximum(models, 1), 1)[:-1]
    costs = sum(float(pool.cost.max(axis=1).sum()) for pool in pools)
    # Where all is free, what is missing counts all the same.
    total = max(1.0, costs / max(1, sum(len(pool.cost) for pool in pools)))
    demands = [index for index, (stage, _) in enumerate(levels.keys) if stage is Stage.DEMAND]
    ratio = min(MOST_RATIO, WEIGHT_RANGE ** (1 / max(1, len(demands))))
    ranks = {index: len(demands) - turn for turn, index in enumerate(demands)}
    stages = {Stage.MINIMUM: len(demands) + 1, Stage.CONTINUITY: 0}
    powers = [ranks.get(index, stages.get(stage, 0)) for index, (stage, _) in enumerate(levels.keys)]
    weights: Floats = total / per_model * np.power(ratio, np.array(powers, dtype=np.float64))
    return weights


def _objective(pool: Pool, *, level: int | None, unit: int, settled: Sequence[int]) -> Floats:
    """Return what each column counts for at a level, or at the last one: cost, and then disruption."""
    counted = pool.disturbed.astype(np.float64)
    counted = np.zeros_like(counted) if level is not None else counted + pool.cost * float(unit)
    for stage in Stage:
        at = pool.cohort.levels[:, stage]
        if level is not None:
            counted += np.where(at[:, None] == level, pool.shortfalls[stage], 0)
        ruled = np.isin(at, settled)[:, None] & (pool.shortfalls[stage] > pool.least[stage][:, None])
        counted[ruled] = FORBIDDEN
    counted[pool.repeated | pool.homeless] = FORBIDDEN
    return counted


def _at_level(pool: Pool, level: int) -> tuple[Integers, Integers]:
    """Return the models that count at a level, and their shortfalls there; a model counts at most once."""
    models, stages = np.nonzero(pool.cohort.levels == level)
    return models, pool.shortfalls[stages, models]
