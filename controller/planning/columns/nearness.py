"""How near to a bound is near enough."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

GAP = 1e-3
"""Relative distance to the bound at which an answer is good enough."""

PROVEN_MODELS = 100
"""Up to how many models the best of all columns is sought, however near the answer is."""

TRIFLE = 0.1
"""Part of what a level comes to at most; to be that near to the bound is near enough for any value."""

CERTAINTY = 0.25
"""To which part of what is near enough bounds are sought that are cheap to come by."""

BRIEF_TIMES = 2.0
"""How many times as far from its bound as after a thorough search a level may stay in a brief one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Goal:
    """What a search is to come to at one level."""

    level: int
    least: int
    """It comes to no less, whatever is done."""

    tolerated: float | None
    """How far from its bound a thorough search stayed, as a share of what counts as all of the level (see
    `Nearness.whole`); None where this is to be one."""


class Nearness:
    """Knows what levels come to at least, when each model is at its best, and when nothing is served."""

    def __init__(self, *, models: int, least: Sequence[int], totals: Sequence[int]) -> None:
        self._gap = 0.0 if models <= PROVEN_MODELS else GAP
        self._least = least
        self._totals = totals

    @property
    def is_exact(self) -> bool:
        """Whether there are so few models that the best is sought."""
        return not self._gap

    def whole(self, level: int, counted: float) -> float:
        """Return what distances are a share of: what counts, or a trifle of all if that is more."""
        if level == len(self._totals):
            return counted
        return max(counted, self._totals[level] * TRIFLE)

    def enough(self, level: int, counted: float, *, bound: float) -> float:
        """Return what distance to the bound is not worth any more effort; none where all might be served."""
        if level < len(self._totals) and bound <= self._least[level]:
            return 0.0
        return self._gap * self.whole(level, counted)

    def tolerated(self, goal: Goal, counted: float, *, bound: float) -> float:
        """Return what distance is near enough for a goal."""
        return self.enough(goal.level, counted, bound=bound) + BRIEF_TIMES * self._kept(goal, counted)

    def gap(self, goal: Goal, *, bound: float) -> float:
        """Return how near to the bound a core is solved: what is better may yet be found beyond it."""
        near = self.enough(goal.level, bound, bound=bound)
        return near / 2 if goal.tolerated is None else near + self._kept(goal, max(0.0, bound))

    def needless(self, goal: Goal, counted: float) -> float:
        """Return from what bound on better prices are needless: the answer is nearer than it has to be."""
        near = CERTAINTY * self.enough(goal.level, counted, bound=counted)
        return counted - near - self._kept(goal, counted)

    def certain(self, level: int, bound: float) -> float:
        """Return to what distance a bound over all mixes is sought, near one over some of them."""
        counted = max(0.0, bound)
        return CERTAINTY * self.enough(level, counted, bound=counted)

    def _kept(self, goal: Goal, counted: float) -> float:
        """Return how far a thorough search would have stayed from its bound."""
        return (goal.tolerated or 0.0) * self.whole(goal.level, counted)
