"""Fleets by how much there is of what they need: from everything at once to too little."""

from __future__ import annotations

from typing import Final

import numpy as np

from hack.fleets.fleet import Mix, fleet
from hack.fleets.scenario import Scenario
from hack.fleets.statement import endless, shared_out, stated

PLENTY: Final = (2.0,) * 5
SKEW: Final = (1.5, 0.8, 1.6, 0.75, 1.0)
TIGHT: Final = (1.15, 0.9, 1.1, 0.75, 0.85)
SCARCE: Final = (0.6,) * 5

TINY: Final = Mix(load=0.1, most_offers=8)
HUGE: Final = Mix(huge_share=0.7)
UNEVEN: Final = Mix(sizes=(1, 2, 3, 4, 6, 8))
"""Replicas of 3 and 6: what fits has to be seen node by node."""


def unlimited(rng: np.random.Generator, size: int) -> Scenario:
    """Everything has room at once: models don't meet."""
    asks = fleet(rng, size, Mix())
    return Scenario(problem=stated(asks, endless(asks)))


def plenty(rng: np.random.Generator, size: int) -> Scenario:
    """Twice what everybody would like best."""
    return of_mix(rng, size, Mix(), PLENTY)


def skew(rng: np.random.Generator, size: int) -> Scenario:
    """Enough in sum, not of every type."""
    return of_mix(rng, size, Mix(), SKEW)


def tight(rng: np.random.Generator, size: int) -> Scenario:
    """Hardly enough in sum."""
    return of_mix(rng, size, Mix(), TIGHT)


def scarce(rng: np.random.Generator, size: int) -> Scenario:
    """Six tenths of what everybody would like best."""
    return of_mix(rng, size, Mix(), SCARCE)


def tiny_load(rng: np.random.Generator, size: int) -> Scenario:
    """One replica is mostly too much: rules by cost per capacity go wrong."""
    return of_mix(rng, size, TINY, PLENTY)


def huge_models(rng: np.random.Generator, size: int) -> Scenario:
    """Most models need a whole node: few large blocks."""
    return of_mix(rng, size, HUGE, TIGHT)


def uneven_sizes(rng: np.random.Generator, size: int) -> Scenario:
    """Sizes that don't divide each other, where types are short."""
    return of_mix(rng, size, UNEVEN, SKEW)


def of_mix(rng: np.random.Generator, size: int, mix: Mix, factors: tuple[float, ...]) -> Scenario:
    """Return a fleet with these shares of what it likes best, in random order of the types."""
    asks = fleet(rng, size, mix)
    shares = [factors[index] for index in rng.permutation(len(factors)).tolist()]
    return Scenario(problem=stated(asks, shared_out(asks, shares)))
