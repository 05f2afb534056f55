"""The heuristics of other autoscalers, as engines for comparison.

Like the originals, each heuristic considers replica counts only. Its counts are then granted as far as limits
and real nodes allow (`granting`), so that every result is a feasible plan.

wva-greedy        one variant per model, by priority and then regret; the rest as far as possible.
wva-cost-aware    changes to the current state by cost per capacity; then a limiter.
kthena-expansion  blocks of doubling size in order of their cost, regardless of capacity per replica.

- heuristics: `wva_greedy`, `wva_cost_aware`, `kthena_expansion`; what they see: `view`, `pools`
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from controller.planning.problem import PlacementProblem, Solution
from hack.fleets.rivals import kthena_expansion, wva_cost_aware, wva_greedy
from hack.fleets.rivals.granting import by_arrival, by_priority, grant, pending_accelerators
from hack.fleets.rivals.view import RivalView, view_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Heuristic:
    """The requested counts of an autoscaler, and the order in which they are granted."""

    asks: Callable[[RivalView], tuple[int, ...]]
    """Replicas of each variant, before limits and nodes reduce them."""

    order: Callable[[RivalView], list[int]]
    """Variants in the order in which their replicas are granted."""

    def place(self, problem: PlacementProblem) -> Solution:
        """Return the plan as far as limits and nodes allow."""
        view = view_of(problem)
        return grant(view, self.asks(view), self.order(view))

    def pending(self, problem: PlacementProblem) -> int:
        """Return the requested accelerators that no node has: their pods would stay pending."""
        view = view_of(problem)
        return pending_accelerators(view, self.asks(view), self.order(view))


HEURISTICS: Final[Mapping[str, Heuristic]] = {
    "wva-greedy": Heuristic(asks=wva_greedy.counts, order=by_priority),
    "wva-cost-aware": Heuristic(asks=wva_cost_aware.counts, order=by_priority),
    "kthena-expansion": Heuristic(asks=kthena_expansion.counts, order=by_arrival),
}
"""All heuristics by name."""
