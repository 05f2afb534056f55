"""PodDisruptionBudgets: which one selects some pods, and how many of their replicas it allows to evict."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from math import ceil

from apiserver.kinds.core.selecting import selects
from apiserver.schema.json import Json
from controller.observe.pods import group_of
from controller.planning.ranges import MAX_REPLICAS


class Disruptions:
    """All PodDisruptionBudgets, to be looked up by pods."""

    def __init__(self, budgets: Sequence[Json]) -> None:
        self._at_home: dict[str, list[Json]] = defaultdict(list)
        for budget in budgets:
            self._at_home[budget["metadata"]["namespace"]].append(budget)

    def of(self, pods: Sequence[Json]) -> tuple[str, int | None]:
        """Return the budget of some pods and the replicas that it allows to evict, one after the other.

        An empty name and None without a budget. 0 if a pod has several budgets, because the API server then
        rejects its eviction, or if not all replicas have the same budget. It may select only some pods of
        each group, such as the leaders. The eviction of one pod usually ends all of its group.
        """
        if not self._at_home:
            return "", None
        replicas: dict[str, Counter[str]] = defaultdict(Counter)
        for pod in pods:
            names = self.names(pod)
            if len(names) > 1:
                return "", 0
            replicas[group_of(pod)].update(names)
        found = {frozenset(counts) for counts in replicas.values()} or {frozenset()}
        names = [*found.pop()]
        if found or len(names) > 1:
            return "", 0
        if not names:
            return "", None
        namespace = pods[0]["metadata"]["namespace"]
        budget = next(item for item in self._at_home[namespace] if item["metadata"]["name"] == names[0])
        pods_each = max(counts[names[0]] for counts in replicas.values())
        return names[0], ceil(evictions_allowed(budget) / pods_each)

    def names(self, pod: Json) -> list[str]:
        """Return the names of the budgets that select a pod."""
        labels = pod["metadata"].get("labels") or {}
        return [
            budget["metadata"]["name"]
            for budget in self._at_home.get(pod["metadata"]["namespace"], ())
            if selects((budget.get("spec") or {}).get("selector"), labels)
        ]


def evictions_allowed(budget: Json) -> int:
    """Return the allowed evictions of a budget; 0 while its status is outdated."""
    status, generation = budget.get("status") or {}, budget["metadata"].get("generation", 0)
    is_current = status.get("observedGeneration", generation) >= generation
    allowed = int(status.get("disruptionsAllowed", 0)) if is_current else 0
    return max(0, min(allowed, MAX_REPLICAS))
