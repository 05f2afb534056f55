"""Column generation at one level: the restricted master and exact pricing in turns, until bounds agree.

It starts from earlier dual prices of the level, by row name, and keeps the new ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from controller.planning.engine.core import EXTRA
from controller.planning.engine.incumbent import Incumbent
from controller.planning.engine.master import Duals, Objective
from controller.planning.engine.patterns import around
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.shared import Floats, Integers, Shared
from controller.planning.warm_start import DualPrices, LevelPrices

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

    def __init__(self, incumbent: Incumbent, known: DualPrices | None, deadline_seconds: float) -> None:
        """Start from the prices of an earlier search, if any; the deadline is on the monotonic clock."""
        self._incumbent = incumbent
        self._deadline_seconds = deadline_seconds
        self.bound = -math.inf
        """Bound of the last level over all mixes."""
        self.prices = KnownPrices(incumbent.shared, known)
        self._linear = around(incumbent.options, {})
        """Mixes of the last LP solution, and around it."""

    def solve(self, level: int, enough: float) -> tuple[Objective, Duals]:
        """Return a level's problem with the best duals over all mixes, or any that prove `enough`.

        The patterns that these duals price out are added.
        """
        incumbent = self._incumbent
        name, factor = incumbent.levels.name(level), incumbent.levels.factor(level)
        duals = self._restricted_duals(
            level, self.prices.begin(name, self._kept_names(level), factor), enough
        )
        self.bound, _ = self._price(level, duals)
        for _ in range(PRICINGS - 1):
            if duals.bound - self.bound <= NEGLIGIBLE * abs(duals.bound) + ROUNDING:
                break
            after = self._restricted_duals(level, duals.vector, enough)
            if abs(after.bound - duals.bound) <= ROUNDING:
                break  # the priced patterns change nothing; the bound belongs to the earlier duals
            duals = after
            self.bound, _ = self._price(level, duals)
        self.prices.keep(name, self._kept_names(level), factor, duals.vector)
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
        has_all = bool(incumbent.patterns.is_enumerated.all())
        if not has_all:
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
        models = np.flatnonzero(~incumbent.patterns.is_enumerated)
        if not len(models):
            return duals.bound, True
        if level < incumbent.levels.cost and not distance and duals.bound <= incumbent.least(level):
            return duals.bound, True  # no mix has a smaller shortfall
        option_values, stages = incumbent.levels.prices(incumbent.patterns, incumbent.standing, level, duals)
        least = incumbent.patterns.least(duals.reduced)[models]
        prices = Prices(
            options=option_values + duals.option_prices, stages=stages, least=incumbent.patterns.least_short
        )
        # Within a distance, as many as fit into a core.
        most = max(PRICED, EXTRA // len(models)) if distance else PRICED
        found = price(incumbent.options, models, prices, least + distance, most=most)
        incumbent.extend(found.model, found.options)
        bound = duals.bound - float((least - np.minimum(found.bound, least)).sum())
        return bound, bool((found.reaches >= np.minimum(found.bound, least) + distance).all())

    def _kept_names(self, level: int) -> list[str]:
        """Return the names of the earlier levels that have a row in a level's problem."""
        kept = self._incumbent.levels.levels_in_rows(
            self._incumbent.patterns, self._incumbent.standing, level
        )
        return [self._incumbent.levels.name(earlier) for earlier in kept]


class KnownPrices:
    """Prices per unit of a level's value, keyed by row name, because rows differ between problems."""

    def __init__(self, shared: Shared, earlier: DualPrices | None) -> None:
        """Start with the prices of an earlier search, if any."""
        self._names = shared.row_names
        self._earlier = earlier
        self._found: dict[str, LevelPrices] = {}

    def begin(self, level: str, kept: Sequence[str], factor: int) -> Floats | None:
        """Return the earlier prices of a level for its current rows; None if it was not searched.

        `kept` has the earlier levels that have a row; `factor` is that of the level's value in its
        objective.
        """
        if self._earlier is None:
            return None
        own = next((one for one in self._earlier.levels if one.level == level), None)
        if own is None:
            return None
        shared = dict(zip((*self._earlier.slots, *self._earlier.limits), own.rows, strict=True))
        caps = dict(own.kept)
        rows = [shared.get(name, 0.0) for name in self._names]
        return np.array([*rows, *(caps.get(name, 0.0) for name in kept)]) * factor

    def keep(self, level: str, kept: Sequence[str], factor: int, vector: Floats) -> None:
        """Store the final prices of a level for all its rows."""
        prices, rows = (vector / factor).tolist(), len(self._names)
        caps = tuple(zip(kept, prices[rows:], strict=True))
        self._found[level] = LevelPrices(level=level, rows=tuple(prices[:rows]), kept=caps)

    def all(self) -> DualPrices:
        """Return all stored prices."""
        return DualPrices(
            slots=tuple(name for name in self._names if not isinstance(name, str)),
            limits=tuple(name for name in self._names if isinstance(name, str)),
            levels=tuple(self._found[level] for level in sorted(self._found)),
        )
