"""Demand that changes while the last placement runs, to test how well and how calmly engines follow."""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from hack.fleets.families_loads import SKEW
from hack.fleets.fleet import Ask, Mix, fleet
from hack.fleets.scenario import Scenario
from hack.fleets.statement import drawn_out, stated

PRICE_PERCENT: Final = 10
"""Price of starting or stopping a replica, in percent of its cost."""

_SMALL: Final = 100
_STEPS: Final = 100
_STEPS_OF_LARGE: Final = 8
_SWING: Final = 0.25
_PERIOD_STEPS: Final = 24
_BURST_SHARE: Final = 0.01
_BURST: Final = 2.0
_RIPPLE_SHARE: Final = 0.01


def waves(rng: np.random.Generator, size: int) -> Scenario:
    """Return a sequence in which all demands swing by a quarter, with random phases and rare doublings."""
    asks = fleet(rng, size, Mix())
    phases = rng.uniform(0, 2 * math.pi, size)

    def changed(step: int) -> tuple[int, ...]:
        swing = 1 + _SWING * np.sin(phases + 2 * math.pi * step / _PERIOD_STEPS)
        burst = np.where(rng.random(size) < _BURST_SHARE, _BURST, 1.0)
        return _scale(asks, swing * burst)

    steps = _STEPS if size <= _SMALL else _STEPS_OF_LARGE
    return _sequence(asks, rng, tuple(changed(step) for step in range(1, steps)))


def ripples(rng: np.random.Generator, size: int) -> Scenario:
    """Return a sequence in which 1 % of the models change their demand by a quarter at each step."""
    asks = fleet(rng, size, Mix())
    factors = np.ones(size)
    demands = []
    for _ in range(1, _STEPS_OF_LARGE):
        some = rng.permutation(size)[: max(1, round(size * _RIPPLE_SHARE))]
        factors[some] = rng.choice((1 - _SWING, 1 + _SWING), len(some))
        demands.append(_scale(asks, factors))
    return _sequence(asks, rng, tuple(demands))


def _sequence(asks: list[Ask], rng: np.random.Generator, demands: tuple[tuple[int, ...], ...]) -> Scenario:
    problem = stated(asks, drawn_out(rng, asks, SKEW), price_percent=PRICE_PERCENT)
    return Scenario(problem=problem, demands=demands)


def _scale(asks: list[Ask], factors: np.typing.NDArray[np.float64]) -> tuple[int, ...]:
    return tuple(
        math.ceil(ask.requirement * factor) for ask, factor in zip(asks, factors.tolist(), strict=True)
    )
