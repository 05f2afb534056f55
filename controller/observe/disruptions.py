"""PodDisruptionBudgets: which one pods are under, and how many evictions it allows now."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from apiserver.schema.json import Json
from controller.observe.selectors import selects
from controller.planning.ranges import MAX_REPLICAS


class Disruptions:
    """All budgets, ready to be asked about pods."""

    def __init__(self, budgets: Sequence[Json]) -> None:
        self._at_home: dict[str, list[Json]] = defaultdict(list)
        for budget in budgets:
            self._at_home[budget["metadata"]["namespace"]].append(budget)

    def of(self, pods: Sequence[Json]) -> tuple[str, int | None]:
        """Return the budget that all of some pods are under, and its evictions; no name and None without one.

        0 evictions where a pod is under several, which the API server never evicts, or not all are under
        the same.
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
        """Return the budgets that a pod is under, by name."""
        labels = pod["metadata"].get("labels") or {}
        return [
            budget["metadata"]["name"]
            for budget in self._at_home.get(pod["metadata"]["namespace"], ())
            if selects((budget.get("spec") or {}).get("selector"), labels)
        ]


def evictions_allowed(budget: Json) -> int:
    """Return the evictions that a status allows; none while it is not about the budget as it stands."""
    status, generation = budget.get("status") or {}, budget["metadata"].get("generation", 0)
    is_current = status.get("observedGeneration", generation) >= generation
    return min(int(status.get("disruptionsAllowed", 0)), MAX_REPLICAS) if is_current else 0
