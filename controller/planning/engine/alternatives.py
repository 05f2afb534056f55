"""Find the best alternative mix for each variant, with another number of its replicas."""

from __future__ import annotations

import numpy as np

from controller.planning.engine.options import Options, summed
from controller.planning.engine.patterns import Patterns
from controller.planning.engine.shared import Floats, Integers

Mix = tuple[tuple[int, int], ...]
"""(variant, replicas) of each variant of one model."""


def alternatives(
    options: Options, patterns: Patterns, chosen: Integers, option_prices: Floats
) -> tuple[Mix, ...]:
    """Return for each variant the cheapest such mix with no larger shortfall; empty if there is none.

    The cost of a mix includes the dual prices of the shared rows it uses. `chosen` (models,) is the chosen
    pattern of each model; `option_prices` (options,) is what options pay at the duals of the cost level.
    """
    paid = patterns.cost + summed(option_prices, patterns.options)
    as_well = (patterns.short <= patterns.short[:, chosen][:, patterns.model]).all(axis=0)
    held = patterns.options[chosen]
    found: list[Mix] = [()] * len(options.first)
    for position in range(patterns.options.shape[1]):
        differs = patterns.options[:, position] != held[patterns.model, position]
        value = np.where(as_well & differs, paid, np.inf)
        best = patterns.best(value)
        for model in np.flatnonzero(np.isfinite(value[best])).tolist():
            own = patterns.options[best[model], : len(options.members[model])]
            if position < len(own):
                mix = tuple(zip(options.variant[own].tolist(), options.count[own].tolist(), strict=True))
                found[int(options.variant[own[position]])] = mix
    return tuple(found)
