"""A divisible answer made whole: each model takes part of it as a whole column."""

from __future__ import annotations

import numpy as np
import pytest

from controller.planning.columns.cohorts import cohorts_of, levels_of
from controller.planning.columns.market import BLOCKS, Answer, Market
from controller.planning.columns.mixes import first_mixes
from controller.planning.columns.phase import weighted
from controller.planning.columns.pool import pool_of
from controller.planning.columns.resources import resources_of
from hack.bench.placement.catalogue import Instance

MODELS = 300


def _market() -> tuple[Market, list[Answer]]:
    """Return a market with three answers: at no price, and at two that make columns dear."""
    problem = Instance(family="F3-skew", size=MODELS, seed=1).scenario().problem
    resources, levels = resources_of(problem), levels_of(problem)
    pools = [pool_of(cohort, first_mixes(cohort)) for cohort in cohorts_of(problem, resources, levels)]
    phase = weighted(pools, resources, levels)
    market = Market(pools, resources, phase)
    prices = (np.full(len(phase.capacity), price) for price in (0.0, 1e6, 1e9))
    return market, [market.answer(price) for price in prices]


@pytest.mark.parametrize(
    "shares",
    [
        pytest.param((1.0, 0.0, 0.0), id="all of the first"),
        pytest.param((0.0, 0.0, 1.0), id="all of the last"),
        pytest.param((0.5, 0.0, 0.5), id="half of the first and half of the last"),
        pytest.param((0.2, 0.3, 0.5), id="something of all"),
    ],
)
def test_each_answer_has_its_part_of_each_block(shares: tuple[float, float, float]) -> None:
    """What all models take is what the divisible answer takes, but for the rounding of a few."""
    market, answers = _market()
    weights = np.tile(np.array(shares)[:, None], (1, BLOCKS))
    drawn = market.drawn(answers, weights)

    for index, columns in enumerate(drawn):
        offered = np.array(
            [answer.chosen[index] for answer, share in zip(answers, shares, strict=True) if share]
        )
        assert (offered == columns).any(axis=0).all()
    counts = [
        sum(int((answer.chosen[index] == columns).sum()) for index, columns in enumerate(drawn))
        for answer in answers
    ]
    for count, share in zip(counts, shares, strict=True):
        assert count >= share * MODELS - BLOCKS


def test_answers_differ_so_that_it_matters_which_is_drawn() -> None:
    """Otherwise the test above could not fail."""
    _, answers = _market()
    first, last = ([*np.concatenate(answer.chosen)] for answer in (answers[0], answers[-1]))
    assert first != last
