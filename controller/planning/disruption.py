"""What PodDisruptionBudgets still allow: one ledger for everything that a plan disrupts.

A replica that is ready and is stopped, for a higher priority or because it is not needed, and a pod that is
evicted are the same to its budget: a pod less that is healthy. Kubernetes holds only evictions against a
budget, so a plan that stops and evicts under one has to count both by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.planning.demand import staying_replicas

if TYPE_CHECKING:
    from collections.abc import Iterable

    from controller.planning.cluster import MovablePod
    from controller.planning.snapshot import Snapshot, Variant

BudgetKey = tuple[str, str]
"""Namespace, and name of a disruption budget or else of what has none."""


def budget_of(item: Variant | MovablePod) -> BudgetKey:
    """Return what identifies the budget of a variant's pods, or of a pod of others."""
    return item.namespace, item.disruption_budget or f"{type(item).__name__} {item.name}"


class DisruptionLedger:
    """How many pods may still be disrupted under each budget; what has no budget has no limit."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._left: dict[BudgetKey, int] = {}
        for variant in snapshot.variants:
            self._know(budget_of(variant), variant.evictable_replicas)
        for node in snapshot.nodes:
            for pod in node.movable:
                self._know(budget_of(pod), pod.evictable)

    def left(self, budget: BudgetKey) -> int | None:
        """Return what is left; None where there is no limit, and less than 0 where more was stopped."""
        return self._left.get(budget)

    def evict(self, budget: BudgetKey, pods: int) -> None:
        """Spend evictions."""
        if budget in self._left:
            self._left[budget] -= pods

    def preempt(self, variant: Variant, replicas: int) -> int:
        """Stop so many replicas, or as many as may go, those first that are not ready; return how many."""
        left = self._left.get(budget_of(variant))
        if left is None:
            return replicas
        leaving = min(replicas, _unready(variant) + max(0, left))
        self.evict(budget_of(variant), max(0, leaving - _unready(variant)))
        return leaving

    def stop(self, stays: Iterable[tuple[Variant, int]]) -> None:
        """Spend what is stopped in any case: of each variant only so many replicas stay."""
        for variant, replicas in stays:
            self.evict(budget_of(variant), max(0, _ready(variant) - replicas))

    def _know(self, budget: BudgetKey, allowed: int | None) -> None:
        """Note an allowance; where pods say different ones of a budget, the smallest counts."""
        if allowed is not None:
            self._left[budget] = min(allowed, self._left.get(budget, allowed))


def _ready(variant: Variant) -> int:
    return sum(replica.ready for replica in staying_replicas(variant))


def _unready(variant: Variant) -> int:
    """Return the replicas on nodes that are not ready: they go before all that are."""
    return sum(bool(replica.nodes) and not replica.ready for replica in staying_replicas(variant))
