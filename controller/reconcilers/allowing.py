"""Checks that all evictions of a round are allowed together, which single dry runs cannot show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from apiserver.cluster.client import Cluster
from apiserver.cluster.errors import NotFound, Throttled
from apiserver.cluster.resource import DISRUPTION_BUDGETS
from apiserver.schema.json import Json
from controller.observe.disruptions import Disruptions, evictions_allowed
from controller.reconcilers.rounds import Target


async def ask(cluster: Cluster, target: Target, *, dry_run: bool) -> None:
    """Evict a pod, or check by a dry run whether that is allowed. Raises ClusterError if it is not."""
    metadata = target.pod["metadata"]
    await cluster.evict(metadata["namespace"], metadata["name"], uid=metadata["uid"], dry_run=dry_run)


async def spent_budget(cluster: Cluster, budgets: Sequence[Json], chosen: Sequence[Target]) -> str:
    """Return why a disruption budget would refuse one of several evictions, or an empty string.

    A dry run consumes no budget, so both of two evictions pass where the budget allows one. Budgets are read
    again, because the cached ones may be slightly outdated. Raises ClusterError if a read is rejected.
    """
    known = Disruptions(budgets)
    wanted = Counter(
        (target.pod["metadata"]["namespace"], name) for target in chosen for name in known.names(target.pod)
    )
    for (namespace, name), count in sorted(wanted.items()):
        if count == 1:
            continue  # covered by the dry run
        try:
            budget = await cluster.get(DISRUPTION_BUDGETS, name, namespace=namespace)
        except NotFound:
            continue
        if (allowed := evictions_allowed(budget)) < count:
            return f"the disruption budget {namespace}/{name} allows {allowed} of {count} evictions"
    return ""


def is_for_a_budget(error: Throttled) -> bool:
    """Tell whether a disruption budget refused an eviction, as opposed to an overloaded API server."""
    causes = ((error.status or {}).get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)
