"""Exact pricing against brute force: the value of every mix of every model, at random prices."""

from __future__ import annotations

from itertools import product
from random import Random

import numpy as np
import pytest
from support.campaign import often
from support.small_problems import small_problem

from controller.planning.engine.options import NONE, Options, options_of
from controller.planning.engine.patterns import is_allowed, shortfalls
from controller.planning.engine.pricing import Prices, price
from controller.planning.problem import per_mille_missing

TOLERANCE = 1e-6
HARD = 0.2
"""Share of stages at which a mix must have the least possible shortfall."""


def _prices(random: Random, options: Options) -> Prices:
    models = np.arange(len(options.members))
    stages = [
        [np.inf if random.random() < HARD else 3 * random.random() for _ in models] for _ in options.level
    ]
    return Prices(
        options=np.array([100 * random.random() for _ in options.count[:-1]] + [0.0]),
        stages=np.array(stages),
        least=shortfalls(options, models, options.tops),
    )


def _mixes(options: Options, model: int) -> list[tuple[int, ...]]:
    """Return all mixes of a model that its ceilings allow, as padded options."""
    own = [
        range(int(options.first[v]), int(options.first[v] + options.top[v] - options.lower[v]) + 1)
        for v in options.members[model]
    ]
    padding = (len(options.count) - 1,) * (options.width - len(own))
    every = [(*mix, *padding) for mix in product(*own)]
    allowed = is_allowed(options, np.full(len(every), model), np.array(every))
    return [mix for mix, is_kept in zip(every, allowed.tolist(), strict=True) if is_kept]


def _value(options: Options, prices: Prices, model: int, mix: tuple[int, ...]) -> float:
    """Return the value of a mix, row by row; infinite if its shortfall is larger than required."""
    value = float(prices.options[list(mix)].sum())
    short = dict.fromkeys(range(len(prices.stages)), 0)
    for r, amounts in enumerate(options.amounts):
        stage = int(options.stage[r, model])
        if stage != NONE:
            missing = per_mille_missing(int(options.requirement[r, model]), int(amounts[list(mix)].sum()))
            short[stage] += missing * int(options.weight[r, model])
    for stage, amount in short.items():
        rate = float(prices.stages[stage, model])
        if not np.isinf(rate):
            value += rate * amount
        elif amount > prices.least[stage, model]:
            return np.inf
    return value


@pytest.mark.parametrize("most", [1, 3, 10_000])
@pytest.mark.parametrize("distance", [0.0, 5.0, 500.0])
def test_no_mix_is_cheaper_than_the_bound_and_all_near_ones_are_listed(distance: float, most: int) -> None:
    """The bound is at most the least value, and all mixes with a value below `reaches` are listed."""
    tight = count = 0
    for seed in range(often(60)):
        random = Random(seed)
        options, _ = options_of(small_problem(random))
        prices = _prices(random, options)
        models = np.arange(len(options.members))
        values = [
            {mix: _value(options, prices, m, mix) for mix in _mixes(options, m)} for m in models.tolist()
        ]
        least = np.array([min(own.values()) for own in values])
        result = price(options, prices, least + distance, most=most)
        listed = set(zip(result.model.tolist(), map(tuple, result.options.tolist()), strict=True))
        for m, own in enumerate(values):
            assert result.bound[m] <= least[m] + TOLERANCE * max(1.0, abs(least[m])), seed
            tight += result.bound[m] >= least[m] - TOLERANCE * max(1.0, abs(least[m]))
            near = min(least[m] + distance, float(result.reaches[m])) * (1 - TOLERANCE)
            assert {(m, mix) for mix, value in own.items() if value < near} <= listed, seed
            count += 1
    assert tight > 0.95 * count
