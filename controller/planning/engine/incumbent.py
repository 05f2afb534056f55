"""The best solution so far, and the patterns among which it was chosen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from controller.planning.engine.core import Selection
from controller.planning.engine.levels import Levels, Standing
from controller.planning.engine.master import Master, Objective
from controller.planning.engine.options import Options
from controller.planning.engine.patterns import Patterns, extend
from controller.planning.engine.shared import Integers, Shared
from controller.planning.problem import PlacementProblem


class Incumbent:
    """The incumbent of a search, with the patterns that it may use.

    `standing` says how much of earlier levels another solution must keep.
    """

    def __init__(
        self,
        problem: PlacementProblem,
        options: Options,
        shared: Shared,
        patterns: Patterns,
        selection: Selection,
    ) -> None:
        self.problem = problem
        self.options = options
        self.shared = shared
        self.patterns = patterns
        self.selection = selection
        self.levels = Levels(options, shared)
        self.standing = Standing(values=self.values, easy=range(0))

    @property
    def values(self) -> tuple[int, ...]:
        """The value of each level, cost last."""
        return self.levels.values(self.patterns, self.selection)

    def assume(self, easy: range) -> None:
        """Require the present values of earlier levels, and the minimum of `easy` ones."""
        self.standing = Standing(values=self.values, easy=easy)

    @property
    def is_met(self) -> bool:
        """Whether the incumbent is at the minimum of all easy levels."""
        values = self.values
        return all(values[level] <= self.least(level) for level in self.standing.easy)

    def least(self, level: int) -> int:
        """Return the sum of each model's least shortfall at a level; 0 for cost."""
        return self.levels.least(self.patterns, level)

    def objective(self, level: int) -> Objective:
        """Return the problem of a level over the present patterns."""
        return self.levels.objective(self.patterns, self.standing, level)

    def master(self, objective: Objective) -> Master:
        """Return the restricted master of a problem."""
        return Master(self.options, self.shared, self.patterns, objective)

    def objective_value(self, objective: Objective, selection: Selection | None = None) -> float:
        """Return the objective of a selection, by default the incumbent; infinite if it is excluded."""
        chosen = selection or self.selection
        added = np.array(chosen.added, dtype=np.float64)
        return float(objective.value[chosen.patterns].sum()) + float(objective.growth_price @ added)

    def take(self, objective: Objective, found: Selection) -> None:
        """Make a selection the incumbent if it is better, level by level, then by the objective."""

        def rank(selection: Selection) -> tuple[tuple[int, ...], float]:
            return self.levels.values(self.patterns, selection), self.objective_value(objective, selection)

        if rank(found) < rank(self.selection):
            self.selection = found

    def extend(self, model: Integers, mixes: Integers) -> None:
        """Add patterns: models (mixes,), options (mixes, width)."""
        if not len(model):
            return
        old, held = self.patterns, self.selection.patterns
        self.patterns = extend(self.options, old, model, mixes)
        kept = self.patterns.numbers(old.model[held], old.options[held])
        self.selection = replace(self.selection, patterns=kept)

    def offer(self, level: int, replicas: Sequence[int], added: tuple[int, ...]) -> Objective:
        """Add the patterns of a solution, keep it if it is better, and return the problem with them."""
        mixes = self.options.mixes(replicas)
        self.extend(*mixes)
        objective = self.objective(level)
        self.take(objective, Selection(patterns=self.patterns.numbers(*mixes), added=added))
        return objective
