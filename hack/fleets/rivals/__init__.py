"""What other autoscalers do, as engines of their own to compare with.

Each looks at replica counts only, as the original does. What it asks for is then granted as far as limits and
real nodes allow (`granting`), so that every answer is a possible plan.

wva-greedy        one variant per model, by priority and then regret; the rest as far as it goes.
wva-cost-aware    from what runs: more of the best cost per capacity, less of the dearest; then a limiter.
kthena-expansion  blocks of doubling size in order of their cost, whatever a replica can do.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from controller.planning.problem import PlacementProblem, Solution
from hack.fleets.rivals import kthena_expansion, wva_cost_aware, wva_greedy
from hack.fleets.rivals.granting import by_arrival, by_priority, granted, pending
from hack.fleets.rivals.view import View, view_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """What it asks for, and whose turn it is when that is granted."""

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


RULES: Final[Mapping[str, Rule]] = {
    "wva-greedy": Rule(asks=wva_greedy.counts, order=by_priority),
    "wva-cost-aware": Rule(asks=wva_cost_aware.counts, order=by_priority),
    "kthena-expansion": Rule(asks=kthena_expansion.counts, order=by_arrival),
}
"""All of them by name."""
