"""Columns of a model: each is carried once, and keeps its number when others join."""

from __future__ import annotations

from random import Random

import numpy as np
from small_problems import choosy_problem, small_problem
from support.campaign import often

from controller.planning.columns.cohorts import Cohort, cohorts_of, levels_of
from controller.planning.columns.mixes import first_mixes, neighbours
from controller.planning.columns.pool import Pool, pool_of, repeated_in
from controller.planning.columns.resources import resources_of
from controller.planning.columns.spreading import laid_out
from hack.bench.placement.catalogue import Instance


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


def test_what_is_repeated_is_told_alike_however_it_is_found() -> None:
    """By a number for each mix where there are few enough of them, else by all replicas of each."""
    random = np.random.default_rng(1)
    for _ in range(often(300)):
        shape = tuple(random.integers(1, (5, 12, 5)).tolist())
        mixes = random.integers(0, random.integers(1, 6), size=shape)
        wide = np.concatenate([mixes, np.full((*shape[:2], 1), 2**62)], axis=2)
        expected = np.array(
            [[model[column] in model[:column] for column in range(len(model))] for model in mixes.tolist()]
        )
        assert (repeated_in(mixes) == expected).all()
        assert (repeated_in(wide) == expected).all()


def test_given_prices_one_way_to_spread_a_mix_is_the_cheapest_of_all() -> None:
    """All ways are there where mixes are few; none of them costs less than the one that prices ask for."""
    compared = 0
    for seed in range(1, often(120), 2):
        for cohort in (pool.cohort for pool in _pools(seed) if pool.new is not None):
            if cohort.is_enumerable and all(
                found is None or (found.max_skew == 1).all() for found in cohort.domains
            ):
                compared += _compare_ways(cohort, Random(seed))
    assert compared


def _compare_ways(cohort: Cohort, random: Random) -> int:
    mixes = first_mixes(cohort)
    price = np.array([[random.random() for _ in row] for row in cohort.place_class])
    asked = laid_out(cohort, mixes, price)[1]
    ways = asked.reshape(len(mixes), -1, mixes.shape[1], asked.shape[2])
    costs = (ways * price[:, None, None, :]).sum(axis=3)
    assert (costs[:, -1] <= costs.min(axis=1) + 1e-9).all()
    return int((costs.max(axis=1) > costs.min(axis=1) + 1e-9).sum())


def test_where_one_way_stands_for_all_each_model_begins_elsewhere() -> None:
    """One replica of each lies in as many domains as there are models or domains."""
    problem = Instance(family="F9-zones-10", size=100, seed=1).scenario().problem
    compared = 0
    for cohort in cohorts_of(problem, resources_of(problem), levels_of(problem)):
        domains = cohort.domains[0]
        if domains is not None and not cohort.is_enumerable and not cohort.bound.any():
            one = np.zeros_like(cohort.lower)
            one[:, 0] = 1
            asked = laid_out(cohort, one[:, None])[1][:, 0, : domains.lying.shape[1]]
            assert asked.sum() == len(one)
            assert (asked.sum(axis=0) > 0).sum() == min(asked.shape)
            compared += len(one)
    assert compared
