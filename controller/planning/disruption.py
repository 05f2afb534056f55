"""A ledger of the disruptions that PodDisruptionBudgets still allow, shared by all parts of a plan.

A ready replica that is stopped, because of a higher priority or because it is not needed, counts like an
evicted pod: one healthy pod less. Kubernetes checks only evictions against a budget, so a plan that both
stops and evicts pods under one budget has to count both itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from controller.planning.cluster import MovablePod
from controller.planning.demand import ready_replicas, staying_replicas
from controller.planning.snapshot import Snapshot, Variant

BudgetKey = tuple[str, str]
"""Namespace, and name of a disruption budget, or a unique name for what has none."""


def budget_of(item: Variant | MovablePod) -> BudgetKey:
    """Return the key of the budget of a variant's pods, or of another workload's pod."""
    return item.namespace, item.disruption_budget or f"{type(item).__name__} {item.name}"


class DisruptionLedger:
    """The disruptions left under each budget; without a budget there is no limit."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._left: dict[BudgetKey, int] = {}
        for variant in snapshot.variants:
            self._know(budget_of(variant), variant.evictable_replicas)
        for node in snapshot.nodes:
            for pod in node.movable:
                self._know(budget_of(pod), pod.evictable)

    def remaining(self, budget: BudgetKey) -> int | None:
        """Return the disruptions left; None without a limit, negative if too many pods were stopped."""
        return self._left.get(budget)

    def evict(self, budget: BudgetKey, pods: int) -> None:
        """Deduct evictions from a budget."""
        if budget in self._left:
            self._left[budget] -= pods

    def preempt(self, variant: Variant, replicas: int) -> int:
        """Stop up to `replicas` replicas as the budget allows, unready ones first, and return how many."""
        left = self._left.get(budget_of(variant))
        if left is None:
            return replicas
        leaving = min(replicas, _unready(variant) + max(0, left))
        self.evict(budget_of(variant), max(0, leaving - _unready(variant)))
        return leaving

    def stop(self, stays: Iterable[tuple[Variant, int]]) -> None:
        """Deduct the ready replicas that a plan stops anyway, given how many of each variant stay."""
        for variant, replicas in stays:
            self.evict(budget_of(variant), max(0, ready_replicas(variant) - replicas))

    def _know(self, budget: BudgetKey, allowed: int | None) -> None:
        """Record an allowance; if pods report different values for one budget, the smallest applies."""
        if allowed is not None:
            self._left[budget] = min(allowed, self._left.get(budget, allowed))


def _unready(variant: Variant) -> int:
    """Return the number of bound replicas that are not ready; these are removed before any ready replica."""
    return sum(bool(replica.nodes) and not replica.ready for replica in staying_replicas(variant))
