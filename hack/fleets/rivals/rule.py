"""One rule of another autoscaler, and all that is made of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from hack.fleets.rivals.granting import granted, pending
from hack.fleets.rivals.view import view_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from controller.planning.problem import PlacementProblem, Solution
    from hack.fleets.rivals.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What it asks for, and whose turn it is when that is granted."""

    name: str
    asks: Callable[[View], tuple[int, ...]]
    """Replicas of each variant, before limits and nodes cut them."""

    order: Callable[[View], list[int]]
    """Whose replicas are granted first, by variant."""

    def place(self, problem: PlacementProblem) -> Solution:
        """Return the plan as far as limits and nodes allow."""
        view = view_of(problem)
        return granted(view, self.asks(view), self.order(view))

    def pending(self, problem: PlacementProblem) -> int:
        """Return how many accelerators the counts ask for and no node has: their pods would stay pending."""
        view = view_of(problem)
        return pending(view, self.asks(view), self.order(view))
