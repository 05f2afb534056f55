"""The lexicographic minimum, level by level: duals bound each level, and a core of patterns solves it.

Levels that can all be at their minimum, according to their bounds, are settled together with the first one
that cannot: its duals tell which patterns also serve the easy levels best.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.core import Core, Selection, core_of
from controller.planning.engine.counts import Counted, Counts
from controller.planning.engine.known_prices import KnownPrices
from controller.planning.engine.levels import Levels, Standing, proofs_of, whole_bound
from controller.planning.engine.master import Duals, Master, Objective
from controller.planning.engine.patterns import around, joined
from controller.planning.engine.pricing import Prices, price
from controller.planning.engine.rounding import rounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.cpsat import Limits, Result
    from controller.planning.engine.options import Options
    from controller.planning.engine.patterns import Patterns
    from controller.planning.engine.shared import Booleans, Floats, Integers, Shared
    from controller.planning.problem import PlacementProblem, Proof
    from controller.planning.warm_start import DualPrices

GAP = 1e-3
"""Relative gap at which an answer is accepted, where levels are not settled by replica counts."""

TRIFLE = 0.1
"""The accepted gap is relative to at least this share of a level's total."""

EXTRAS = (1_500, 6_000, 24_000)
"""Extra patterns of successive cores, besides one per model."""

FAR = 10.0
"""Factor on the accepted gap beyond which the largest core is solved."""

PRICINGS = 4
"""The maximum number of pricing rounds over all mixes per level."""

PRICED = 24
"""Mixes of each model that pricing adds at once."""

SHARE_PER_LEVEL = 0.5
"""Share of the remaining effort that a level may use."""

SHARE_PER_CORE = 0.5
"""Share of the remaining effort of a level that one core may use."""

SHARE_UNMET = 0.25
"""The same while no solution at the minimum of all easy levels is known: there may be none."""

LEAST_SECONDS = 0.1
"""Minimum wall time of each core, in seconds."""

ROUNDING = 1e-6
"""Differences of integers below this are rounding errors."""

NEGLIGIBLE = 1e-4
"""Relative gap between the bounds over patterns and over all mixes at which pricing stops."""

LARGE = 50_000
"""Product of models and slot rows up to which the effort is as given; it grows in proportion beyond."""


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The result of the search."""

    patterns: Patterns
    selection: Selection
    proofs: tuple[Proof, ...]
    prices: DualPrices
    option_prices: Floats
    """(options,): what each option pays at the prices of the cost level."""
    left: Limits
    """The remaining effort."""


class Search:
    """The state of the search: the patterns, the incumbent, and the remaining effort."""

    def __init__(
        self,
        problem: PlacementProblem,
        options: Options,
        shared: Shared,
        patterns: Patterns,
        limits: Limits,
        *,
        known: DualPrices | None,
        most_counted: int,
    ) -> None:
        """Start with patterns only; up to `most_counted` models are settled by replica counts."""
        self._problem = problem
        self._options = options
        self._shared = shared
        self._patterns = patterns
        self._levels = Levels(options, shared, patterns)
        self._limits = limits
        self._prices = KnownPrices(shared, known)
        self._option_prices = np.zeros(len(options.count))
        size = len(options.members) * len(shared.slots)
        self._left_seconds = limits.deterministic_seconds * max(1.0, size / LARGE)
        self._deadline_seconds = monotonic() + limits.wall_seconds
        self._is_counted = len(options.members) <= most_counted
        self._gap = 0.0 if self._is_counted else GAP
        self._bound = -math.inf
        """Bound over all mixes, from the last pricing."""
        self._linear = around(options, {})
        """Mixes of the last LP solution, and around it."""

    def run(self, incumbent: Selection) -> Answer:
        """Settle all levels, the easy ones together with the next hard one."""
        self._incumbent = incumbent
        bounds: list[int] = []
        while len(bounds) <= self._levels.cost:
            first = len(bounds)
            hard = self._first_hard(first)
            self._assume(range(first, hard))
            bound = self._settle(hard)
            if self._is_met():
                bounds += [*(self._least(level) for level in range(first, hard)), bound]
                continue
            # No answer at the minimum of all of them was found: minimize the first that is above it.
            above = next(n for n in range(first, hard) if self._values[n] > self._least(n))
            self._assume(range(first, above))
            bounds += [*(self._least(level) for level in range(first, above)), self._settle(above)]
        return Answer(
            patterns=self._patterns,
            selection=self._incumbent,
            proofs=proofs_of(self._levels, self._values, bounds),
            prices=self._prices.found(),
            option_prices=self._option_prices,
            left=self._left(self._left_seconds),
        )

    @property
    def _values(self) -> tuple[int, ...]:
        return self._levels.values(self._patterns, self._incumbent)

    def _assume(self, easy: range) -> None:
        """Fix the values of earlier levels to the incumbent's, with `easy` levels at their minimum."""
        self._standing = Standing(values=self._values, easy=easy)

    def _is_met(self) -> bool:
        return all(self._values[level] <= self._least(level) for level in self._standing.easy)

    def _least(self, level: int) -> int:
        return self._levels.least(self._patterns, level)

    def _objective(self, level: int) -> Objective:
        return self._levels.objective(self._patterns, self._standing, level)

    def _master(self, objective: Objective) -> Master:
        return Master(self._options, self._shared, self._patterns, objective)

    def _first_hard(self, first: int) -> int:
        """Return the first level that cannot be at its minimum with all earlier ones, according to bounds."""
        for level in range(first, self._levels.cost + 1):
            self._assume(range(first, level))
            if not np.isfinite(self._patterns.least(self._objective(level).value)).all():
                return level - 1  # some model cannot be at its minimum at all of these levels
            least = self._least(level)
            if level == self._levels.cost or (self._is_met() and self._values[level] <= least):
                continue
            self._priced(level, least + 1.0)
            if self._bound > least + ROUNDING * max(1.0, least):
                return level
        return self._levels.cost

    def _settle(self, level: int) -> int:
        """Minimize one level within the effort, and return its lower bound."""
        value, least = self._values[level], self._least(level)
        if level < self._levels.cost and value <= least and self._is_met():
            return value
        unit, enough = self._levels.unit(level), math.inf
        if self._gap and self._is_met():
            enough = value * unit - self._tolerance(level, value * unit) / 4
        objective, duals = self._priced(level, enough)
        if level == self._levels.cost:
            self._option_prices = duals.option_prices
        bound = self._improved(
            level, objective, duals, tolerance=self._tolerance(level, max(0.0, self._bound))
        )
        return max(least, whole_bound((bound - self._levels.tie(level)) / unit))

    def _tolerance(self, level: int, counted: float) -> float:
        """Return the accepted distance from the bound, for a value of a level."""
        if level < self._levels.cost:
            counted = max(counted, self._levels.totals[level] * TRIFLE)
        return self._gap * counted

    def _priced(self, level: int, enough: float) -> tuple[Objective, Duals]:
        """Return a level's problem with the best duals over all mixes, or any that prove `enough`.

        The patterns that these duals price out are added.
        """
        name, unit = self._levels.name(level), self._levels.unit(level)
        begin = self._prices.begin(name, self._kept_names(level), unit)
        duals = self._solved(level, begin, enough)
        self._bound, _ = self._all_mixes(level, duals)
        for _ in range(PRICINGS - 1):
            if duals.bound - self._bound <= NEGLIGIBLE * abs(duals.bound) + ROUNDING:
                break
            duals = self._solved(level, duals.vector, enough)
            self._bound, _ = self._all_mixes(level, duals)
        self._prices.keep(name, self._kept_names(level), unit, duals.vector)
        self._linear = around(self._options, duals.means)
        if duals.support is not None:
            models, mixes = zip(self._linear, duals.support, strict=True)
            self._linear = np.concatenate(models), np.concatenate(mixes)
        self._extend(*self._linear)
        objective = self._objective(level)
        return objective, self._master(objective).duals(duals.vector)

    def _solved(self, level: int, begin: Floats | None, enough: float) -> Duals:
        """Return the best duals over the patterns, from some initial prices, or any that prove `enough`."""
        master = self._master(self._objective(level))
        return master.solve(begin, enough=enough, deadline_seconds=self._deadline_seconds)

    def _all_mixes(self, level: int, duals: Duals, distance: float = 0.0) -> tuple[float, bool]:
        """Price all mixes, and add those close to their model's best.

        Returns the bound over all mixes, and whether all mixes within `distance` of the best are present now.
        """
        models = np.flatnonzero(~self._patterns.is_enumerated)
        if not len(models):
            return duals.bound, True
        if level < self._levels.cost and not distance and duals.bound <= self._least(level):
            return duals.bound, True  # no mix has a smaller shortfall
        counted, stages = self._levels.prices(self._patterns, self._standing, level, duals)
        least = self._patterns.least(duals.reduced)[models]
        prices = Prices(
            options=counted + duals.option_prices, stages=stages, least=self._patterns.least_short
        )
        most = max(PRICED, EXTRAS[-1] // len(models)) if distance else PRICED
        found = price(self._options, models, prices, least + distance, most=most)
        self._extend(found.model, found.options)
        bound = duals.bound - float((least - np.minimum(found.bound, least)).sum())
        return bound, bool((found.reaches >= np.minimum(found.bound, least) + distance).all())

    def _extend(self, model: Integers, mixes: Integers) -> None:
        """Add patterns, and update the indices of the incumbent."""
        if not len(model):
            return
        old, held = self._patterns, self._incumbent.patterns
        self._patterns = joined(self._options, old, model, mixes)
        kept = self._patterns.numbers(old.model[held], old.options[held])
        self._incumbent = replace(self._incumbent, patterns=kept)

    def _improved(self, level: int, objective: Objective, duals: Duals, *, tolerance: float) -> float:
        """Solve cores until the incumbent is close enough to the bound, or proven, or the effort is spent.

        Returns the lower bound. `tolerance` is the accepted distance from the bound; the largest core is
        solved only if the incumbent is much further away.
        """
        bound = self._bound
        if self._counted(objective) - bound > tolerance + ROUNDING:
            objective, duals = self._filled(level, duals, self._patterns.best(duals.reduced))
        seconds = self._left_seconds * SHARE_PER_LEVEL
        if self._is_counted:
            return self._by_counts(level, bound, seconds)
        return self._by_cores(level, objective, duals, tolerance=tolerance, seconds=seconds)

    def _by_cores(
        self, level: int, objective: Objective, duals: Duals, *, tolerance: float, seconds: float
    ) -> float:
        """Solve cores until the incumbent is close enough to the bound, and return the lower bound.

        A better incumbent makes the next core smaller. A larger one follows while the last one helped.
        """
        bound, solved, has_all = self._bound, None, False
        turn, may_fix_domains = 0, True
        while turn < len(EXTRAS):
            before = self._counted(objective)
            distance = before - bound
            enough = FAR * tolerance if turn == len(EXTRAS) - 1 else tolerance
            if distance <= enough + ROUNDING or seconds <= 0 or monotonic() >= self._deadline_seconds:
                break
            if solved is None:
                objective, duals, has_all = self._within(level, duals, distance)
            kept, holds_all = core_of(
                self._patterns, objective, duals, self._always(), distance=distance, extra=EXTRAS[turn]
            )
            if may_fix_domains and solved is not None and np.array_equal(self._patterns.only(kept), solved):
                break  # nothing more is within the distance
            solved = self._patterns.only(kept)
            core = self._core(objective, kept, may_fix_domains=may_fix_domains)
            spent = seconds * (SHARE_PER_CORE if self._is_met() else SHARE_UNMET)
            result = self._solve(core, duals, bound=bound, gap=tolerance / 2, seconds=spent)
            seconds -= result.deterministic_seconds
            if holds_all and has_all and core.is_exact and result.values:
                counted = self._counted(objective)
                is_best = result.is_optimal and not tolerance
                bound = max(bound, counted if is_best else min(result.bound, counted))
                if result.is_optimal:
                    return bound
            if self._counted(objective) - bound > tolerance + ROUNDING and level < self._levels.cost:
                objective, duals = self._filled(level, duals, self._incumbent.patterns)
            is_better = self._counted(objective) < before
            if core.fixes_domains and not is_better:
                may_fix_domains = False  # the fixed domains may be the obstacle
            elif is_better and not result.is_optimal:
                may_fix_domains = True
            elif turn and not is_better:
                break
            else:
                turn, may_fix_domains = turn + 1, True
        return min(bound, self._counted(objective))

    def _by_counts(self, level: int, bound: float, seconds: float) -> float:
        """Solve the program over replica counts, and return the lower bound."""
        counted = self._counted(self._objective(level))
        if counted - bound <= ROUNDING or seconds <= 0:
            return min(bound, counted)
        caps = {
            self._options.levels[n]: self._least(n) if n in self._standing.easy else self._standing.values[n]
            for n in range(level)
        }
        counts = Counts(self._problem, self._options, self._shared, caps)
        if level < self._levels.cost:
            terms = counts.level(self._options.levels[level])
        else:
            terms = counts.cost(self._levels.unit(level))
        held = self._patterns.replicas(self._options, self._incumbent.patterns)
        begin = Counted(replicas=held, added=self._incumbent.added)
        found, result = counts.minimize(terms, begin, bound=bound, limits=self._left(seconds))
        self._left_seconds -= result.deterministic_seconds
        if found is None:
            return bound
        counted = self._counted(self._offered(level, found.replicas, found.added))
        return max(bound, counted if result.is_optimal else min(result.bound, counted))

    def _filled(self, level: int, duals: Duals, chosen: Integers) -> tuple[Objective, Duals]:
        """Place some patterns, and what fits beside them; return the problem with the resulting patterns."""
        replicas = self._patterns.replicas(self._options, chosen)
        found = rounded(self._problem, self._options, replicas)
        objective = self._offered(level, found.replicas, found.added)
        return objective, self._master(objective).duals(duals.vector)

    def _offered(self, level: int, replicas: Sequence[int], added: tuple[int, ...]) -> Objective:
        """Add the patterns of a solution, keep it if it is better, and return the problem with them."""
        mixes = self._options.mixes(replicas)
        self._extend(*mixes)
        objective = self._objective(level)
        self._take(objective, Selection(patterns=self._patterns.numbers(*mixes), added=added))
        return objective

    def _take(self, objective: Objective, found: Selection) -> None:
        """Make an answer the incumbent if it is better."""
        if self._rank(objective, found) < self._rank(objective, self._incumbent):
            self._incumbent = found

    def _core(self, objective: Objective, kept: Booleans, *, may_fix_domains: bool) -> Core:
        """Return the core program over some patterns."""
        return Core(
            self._problem,
            self._options,
            self._shared,
            self._patterns,
            objective,
            may_fix_domains=may_fix_domains,
            kept=kept,
        )

    def _solve(self, core: Core, duals: Duals, *, bound: float, gap: float, seconds: float) -> Result:
        """Solve a core, keep its answer if better, and return the result.

        If the incumbent is excluded, the hint is the best pattern of each model at the duals.
        """
        objective, hint = core.objective, self._incumbent
        if not math.isfinite(self._counted(objective)):
            hint = replace(hint, patterns=self._patterns.best(duals.reduced))
        found, result = core.solve(hint, bound=bound, gap=gap, limits=self._left(seconds))
        self._left_seconds -= result.deterministic_seconds
        if found is not None:
            self._take(objective, found)
        return result

    def _left(self, deterministic_seconds: float) -> Limits:
        """Return limits for some effort, within the remaining wall time."""
        return replace(
            self._limits,
            deterministic_seconds=max(0.0, deterministic_seconds),
            wall_seconds=max(LEAST_SECONDS, self._deadline_seconds - monotonic()),
        )

    def _within(self, level: int, duals: Duals, distance: float) -> tuple[Objective, Duals, bool]:
        """Return the problem with all mixes that a better answer might use, and whether it has them all."""
        has_all = bool(self._patterns.is_enumerated.all())
        if not has_all:
            priced = distance if math.isfinite(distance) else GAP * max(1.0, abs(duals.bound))
            _, has_all = self._all_mixes(level, duals, priced)
            has_all = has_all and priced >= distance
        objective = self._objective(level)
        return objective, self._master(objective).duals(duals.vector), has_all

    def _always(self) -> Integers:
        """Return the patterns in every core: those of the incumbent and of the LP solution and around it."""
        return np.union1d(self._incumbent.patterns, self._patterns.numbers(*self._linear))

    def _counted(self, objective: Objective, selection: Selection | None = None) -> float:
        """Return the objective of a selection, by default the incumbent; infinite if it is excluded."""
        chosen = selection or self._incumbent
        added = np.array(chosen.added, dtype=np.float64)
        return float(objective.value[chosen.patterns].sum()) + float(objective.growth_price @ added)

    def _rank(self, objective: Objective, selection: Selection) -> tuple[tuple[int, ...], float]:
        """Return the sort key of answers: the values level by level, then the objective, for disruption."""
        return self._levels.values(self._patterns, selection), self._counted(objective, selection)

    def _kept_names(self, level: int) -> list[str]:
        """Return the names of the earlier levels that have a row in a level's problem."""
        kept = self._levels.kept(self._patterns, self._standing, level)
        return [self._levels.name(earlier) for earlier in kept]
