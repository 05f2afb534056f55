"""What other autoscalers do, as engines of their own to compare with.

Each looks at replica counts only, as the original does. What it asks for is then granted as far as limits and
real nodes allow (`granting`), so that every answer is a possible plan.

wva-greedy        one variant per model, by priority and then regret; the rest as far as it goes.
wva-cost-aware    from what runs: more of the best cost per capacity, less of the dearest; then a limiter.
kthena-expansion  blocks of doubling size in order of their cost, whatever a replica can do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from hack.fleets.rivals import kthena_expansion, wva_cost_aware, wva_greedy
from hack.fleets.rivals.granting import by_arrival, by_priority
from hack.fleets.rivals.rule import Rule

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from controller.planning.problem import PlacementProblem, Solution

RULES: Final = (
    Rule(name="wva-greedy", asks=wva_greedy.counts, order=by_priority),
    Rule(name="wva-cost-aware", asks=wva_cost_aware.counts, order=by_priority),
    Rule(name="kthena-expansion", asks=kthena_expansion.counts, order=by_arrival),
)
"""All of them; whatever else there is by name is made of these."""

STRATEGIES: Final[Mapping[str, Callable[[PlacementProblem], Solution]]] = {
    rule.name: rule.place for rule in RULES
}
"""Engines by name; each returns a possible plan."""

PENDING: Final[Mapping[str, Callable[[PlacementProblem], int]]] = {rule.name: rule.pending for rule in RULES}
"""Accelerators that each asks for by its counts alone and that no node has: its pods would stay pending."""
