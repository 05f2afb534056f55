"""Fleets with different ratios of supply to demand, from abundant to scarce."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from controller.planning.problem import PlacementProblem
from hack.fleets.fleet import Mix, fleet
from hack.fleets.statement import drawn_out, endless, problem_of

PLENTY: Final = (2.0,) * 5
SKEW: Final = (1.5, 0.8, 1.6, 0.75, 1.0)
TIGHT: Final = (1.15, 0.9, 1.1, 0.75, 0.85)
SCARCE: Final = (0.6,) * 5


def unlimited(rng: np.random.Generator, size: int) -> PlacementProblem:
    """Return a fleet with room for everything, so that models don't compete."""
    asks = fleet(rng, size, Mix())
    return problem_of(asks, endless(asks))


def of_mix(rng: np.random.Generator, size: int, *, mix: Mix, factors: tuple[float, ...]) -> PlacementProblem:
    """Return a fleet with these ratios of nodes to preferred demand, in random order of the types."""
    asks = fleet(rng, size, mix)
    return problem_of(asks, drawn_out(rng, asks, factors))


plenty = partial(of_mix, mix=Mix(), factors=PLENTY)
"""Twice the accelerators that all models prefer."""

skew = partial(of_mix, mix=Mix(), factors=SKEW)
"""Enough accelerators in total, but not of every type."""

tight = partial(of_mix, mix=Mix(), factors=TIGHT)
"""Barely enough accelerators in total."""

scarce = partial(of_mix, mix=Mix(), factors=SCARCE)
"""60 % of the accelerators that all models prefer."""

tiny_load = partial(of_mix, mix=Mix(load=0.1, most_offers=8), factors=PLENTY)
"""One replica mostly exceeds the demand, which breaks rules by cost per capacity."""

huge_models = partial(of_mix, mix=Mix(huge_share=0.7), factors=TIGHT)
"""Most models need a whole node, so blocks are few and large."""

uneven_sizes = partial(of_mix, mix=Mix(sizes=(1, 2, 3, 4, 6, 8)), factors=SKEW)
"""Sizes that don't divide each other, with scarce types: fit must be checked node by node."""
