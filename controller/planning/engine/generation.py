"""Column generation at one level: the restricted master and exact pricing in turns, until bounds agree."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from controller.planning.engine.core import EXTRA
from controller.planning.engine.incumbent import Incumbent
from controller.planning.engine.master import Duals, Objective
from controller.planning.engine.patterns import around
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.shared import Floats, Integers
from controller.planning.problem import RowName

PRICINGS = 4
"""The maximum number of pricing rounds over all mixes per level."""

PRICED = 24
"""Mixes of each model that pricing adds at once."""

NEGLIGIBLE = 1e-4
"""Relative gap between the bounds over patterns and over all mixes at which pricing stops."""

UNKNOWN = 1e-3
"""Distance in which mixes are priced, relative to the bound, while no solution is known."""

ROUNDING = 1e-6
"""Differences of integers below this are rounding errors."""


class Generation:
    """The patterns, bounds and prices that column generation found, level by level."""

    def __init__(self, incumbent: Incumbent, deadline_seconds: float) -> None:
        """Start without prices; the deadline is on the monotonic clock."""
        self._incumbent = incumbent
        self._deadline_seconds = deadline_seconds
        self.bound = -math.inf
        """Bound of the last level over all mixes."""
        self.prices: dict[str, Mapping[RowName, float]] = {}
        """Level -> shared row -> final price, per unit of the level's value."""
        self._linear = around(incumbent.options, {})
        """Mixes of the last LP solution, and around it."""

    def solve(self, level: int, enough: float) -> tuple[Objective, Duals]:
        """Return a level's problem with the best duals over all mixes, or any that prove `enough`.

        The patterns that these duals price out are added.
        """
        incumbent = self._incumbent
        name, factor = incumbent.levels.name(level), incumbent.levels.factor(level)
        duals = self._restricted_duals(level, None, enough)
        self.bound, _ = self._price(level, duals)
        for _ in range(PRICINGS - 1):
            if duals.bound - self.bound <= NEGLIGIBLE * abs(duals.bound) + ROUNDING:
                break
            after = self._restricted_duals(level, duals.vector, enough)
            if abs(after.bound - duals.bound) <= ROUNDING:
                break  # the priced patterns change nothing; the bound belongs to the earlier duals
            duals = after
            self.bound, _ = self._price(level, duals)
        prices = (duals.vector / factor).tolist()
        self.prices[name] = dict(zip(incumbent.shared.row_names, prices, strict=False))  # kept levels follow
        self._linear = around(incumbent.options, duals.means)
        if duals.support is not None:
            models, mixes = zip(self._linear, duals.support, strict=True)
            self._linear = np.concatenate(models), np.concatenate(mixes)
        incumbent.extend(*self._linear)
        objective = incumbent.objective(level)
        return objective, incumbent.master(objective).duals(duals.vector)

    def within(self, level: int, duals: Duals, distance: float) -> tuple[Objective, Duals, bool]:
        """Return the problem with all mixes that a better solution might use, and whether it has them all."""
        incumbent = self._incumbent
        priced = distance if math.isfinite(distance) else UNKNOWN * max(1.0, abs(duals.bound))
        bound, has_all = self._price(level, duals, priced)
        # The distance is that from `self.bound`, which these prices must prove as well.
        has_all = has_all and priced >= distance and bound >= self.bound - ROUNDING
        objective = incumbent.objective(level)
        return objective, incumbent.master(objective).duals(duals.vector), has_all

    def always(self) -> Integers:
        """Return the patterns in every core: those of the incumbent and of the LP solution and around it."""
        return np.union1d(self._incumbent.selection.patterns, self._incumbent.patterns.numbers(*self._linear))

    def _restricted_duals(self, level: int, begin: Floats | None, enough: float) -> Duals:
        """Return the best duals over the patterns, from some initial prices, or any that prove `enough`."""
        master = self._incumbent.master(self._incumbent.objective(level))
        return master.solve(begin, enough=enough, deadline_seconds=self._deadline_seconds)

    def _price(self, level: int, duals: Duals, distance: float = 0.0) -> tuple[float, bool]:
        """Price all mixes, and add those close to their model's best.

        Returns the bound over all mixes, and whether all mixes within `distance` of the best are present now.
        """
        incumbent = self._incumbent
        if level < incumbent.levels.cost and not distance and duals.bound <= incumbent.least(level):
            return duals.bound, True  # no mix has a smaller shortfall
        option_values, stages = incumbent.levels.prices(incumbent.patterns, incumbent.standing, level, duals)
        least = incumbent.patterns.least(duals.reduced)
        prices = Prices(
            options=option_values + duals.option_prices, stages=stages, least=incumbent.patterns.least_short
        )
        # Within a distance, as many as fit into a core.
        most = max(PRICED, EXTRA // len(least)) if distance else PRICED
        found = price(incumbent.options, prices, least + distance, most=most)
        incumbent.extend(found.model, found.options)
        bound = duals.bound - float((least - np.minimum(found.bound, least)).sum())
        return bound, bool((found.reaches >= np.minimum(found.bound, least) + distance).all())
