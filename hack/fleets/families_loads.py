"""Fleets by how much there is of what they need: from everything at once to too little."""

from __future__ import annotations

from functools import partial
from typing import Final

import numpy as np

from hack.fleets.fleet import Mix, fleet
from hack.fleets.scenario import Scenario
from hack.fleets.statement import drawn_out, endless, stated

PLENTY: Final = (2.0,) * 5
SKEW: Final = (1.5, 0.8, 1.6, 0.75, 1.0)
TIGHT: Final = (1.15, 0.9, 1.1, 0.75, 0.85)
SCARCE: Final = (0.6,) * 5


def unlimited(rng: np.random.Generator, size: int) -> Scenario:
    """Everything has room at once: models don't meet."""
    asks = fleet(rng, size, Mix())
    return Scenario(problem=stated(asks, endless(asks)))


def of_mix(rng: np.random.Generator, size: int, *, mix: Mix, factors: tuple[float, ...]) -> Scenario:
    """Return a fleet with these shares of what it likes best, in random order of the types."""
    asks = fleet(rng, size, mix)
    return Scenario(problem=stated(asks, drawn_out(rng, asks, factors)))


plenty = partial(of_mix, mix=Mix(), factors=PLENTY)
"""Twice what everybody would like best."""

skew = partial(of_mix, mix=Mix(), factors=SKEW)
"""Enough in sum, not of every type."""

tight = partial(of_mix, mix=Mix(), factors=TIGHT)
"""Hardly enough in sum."""

scarce = partial(of_mix, mix=Mix(), factors=SCARCE)
"""Six tenths of what everybody would like best."""

tiny_load = partial(of_mix, mix=Mix(load=0.1, most_offers=8), factors=PLENTY)
"""One replica is mostly too much: rules by cost per capacity go wrong."""

huge_models = partial(of_mix, mix=Mix(huge_share=0.7), factors=TIGHT)
"""Most models need a whole node: few large blocks."""

uneven_sizes = partial(of_mix, mix=Mix(sizes=(1, 2, 3, 4, 6, 8)), factors=SKEW)
"""Sizes that don't divide each other, where types are short: what fits has to be seen node by node."""
