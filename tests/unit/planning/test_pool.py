"""Columns of a model: each is carried once, and keeps its number when others join."""

from __future__ import annotations

from random import Random

import numpy as np
from campaign import often
from small_problems import choosy_problem, small_problem

from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.mixes import first_mixes, neighbours
from controller.planning.columns.pool import Pool, pool_of
from controller.planning.columns.resources import resources_of


def _pools(seed: int) -> list[Pool]:
    make = choosy_problem if seed % 2 else small_problem
    problem = make(Random(seed))
    cohorts = cohorts_of(problem, resources_of(problem), levels_of(problem))
    return [pool_of(cohort, first_mixes(cohort)) for cohort in cohorts]


def _columns(pool: Pool, model: int) -> list[tuple[object, ...]]:
    """Return what each column that is not repeated is and comes to, in order."""
    new = pool.mixes if pool.new is None else pool.new
    return [
        (
            pool.mixes[model, column].tolist(),
            new[model, column].tolist(),
            pool.asked[model, column].tolist(),
            pool.shortfalls[:, model, column].tolist(),
            int(pool.cost[model, column]),
            int(pool.disturbed[model, column]),
            bool(pool.homeless[model, column]),
        )
        for column in np.flatnonzero(~pool.repeated[model]).tolist()
    ]


def test_a_compact_pool_has_the_same_columns_in_the_same_order() -> None:
    """Only those that are repeated go, as far as no other model of the cohort has more."""
    for seed in range(often(60)):
        for pool in _pools(seed):
            compact = pool.compact()
            widths = [len(_columns(pool, model)) for model in range(len(pool.cost))]
            assert compact.cost.shape == (len(widths), max(widths))
            for model, width in enumerate(widths):
                assert _columns(compact, model) == _columns(pool, model)
                assert not compact.repeated[model, :width].any()


def test_columns_keep_their_numbers_when_others_join() -> None:
    """A selection made before stays what it was."""
    for seed in range(often(60)):
        for pool in (pool.compact() for pool in _pools(seed)):
            joined = pool.joined(pool_of(pool.cohort, neighbours(pool.cohort, pool.mixes[:, 0])))
            for model in range(len(pool.cost)):
                before, after = _columns(pool, model), _columns(joined, model)
                assert after[: len(before)] == before
                assert len({str(column) for column in after}) == len(after)
