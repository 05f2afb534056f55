"""PodDisruptionBudgets: which one selects some pods, and how many evictions it currently allows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from apiserver.schema.json import Json
from controller.observe.selectors import selects
from controller.planning.ranges import MAX_REPLICAS


class Disruptions:
    """All PodDisruptionBudgets, to be looked up by pods."""

    def __init__(self, budgets: Sequence[Json]) -> None:
        self._at_home: dict[str, list[Json]] = defaultdict(list)
        for budget in budgets:
            self._at_home[budget["metadata"]["namespace"]].append(budget)

    def of(self, pods: Sequence[Json]) -> tuple[str, int | None]:
        """Return the budget of some pods and its allowed evictions; an empty name and None without one.

        0 evictions if a pod has several budgets, because the API server then rejects its eviction, or if not
        all pods have the same budget.
        """
        if not self._at_home:
            return "", None
        found = {tuple(self.names(pod)) for pod in pods} or {()}
        names = found.pop()
        if found or len(names) > 1:
            return "", 0
        if not names:
            return "", None
        namespace = pods[0]["metadata"]["namespace"]
        budget = next(item for item in self._at_home[namespace] if item["metadata"]["name"] == names[0])
        return names[0], evictions_allowed(budget)

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
