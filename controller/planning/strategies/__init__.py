"""What other autoscalers do, as engines of their own: to compare with, and to choose where it is preferred.

Each looks at replica counts only, as the original does. What it asks for is then granted as far as limits and
real nodes allow (`granting`), so that every answer is a possible plan.

wva-greedy        one variant per model, by priority and then regret; the rest as far as it goes.
wva-cost-aware    from what runs: more of the best cost per capacity, less of the dearest; then a limiter.
kthena-expansion  blocks of doubling size in order of their cost, whatever a replica can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.planning.strategies import kthena_expansion, wva_cost_aware, wva_greedy
from controller.planning.strategies.granting import by_arrival, by_priority

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.planning.problem import PlacementProblem, Solution

STRATEGIES: Final[Mapping[str, Callable[[PlacementProblem], Solution]]] = {
    "wva-greedy": wva_greedy.place,
    "wva-cost-aware": wva_cost_aware.place,
    "kthena-expansion": kthena_expansion.place,
}
"""Engines by name; each returns a possible plan."""

PENDING: Final[Mapping[str, Callable[[PlacementProblem], int]]] = {
    "wva-greedy": wva_greedy.pending_accelerators,
    "wva-cost-aware": wva_cost_aware.pending_accelerators,
    "kthena-expansion": kthena_expansion.pending_accelerators,
}
"""Accelerators that each asks for by its counts alone and that no node has: its pods would stay pending."""

COUNTS: Final[Mapping[str, Callable[[PlacementProblem], tuple[int, ...]]]] = {
    "wva-greedy": wva_greedy.counts,
    "wva-cost-aware": wva_cost_aware.counts,
    "kthena-expansion": kthena_expansion.counts,
}
"""Replicas of each variant that each asks for, before limits and nodes cut them."""

ORDERS: Final[Mapping[str, Callable[[PlacementProblem], list[int]]]] = {
    "wva-greedy": by_priority,
    "wva-cost-aware": by_priority,
    "kthena-expansion": by_arrival,
}
"""Whose replicas are granted first, by variant."""
