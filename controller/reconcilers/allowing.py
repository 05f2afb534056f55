"""Whether all evictions of a round would be allowed, which each of them alone does not tell."""

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
    """Evict a pod, or ask whether that would be allowed. Raises the ClusterError of what is refused."""
    metadata = target.pod["metadata"]
    await cluster.evict(metadata["namespace"], metadata["name"], uid=metadata["uid"], dry_run=dry_run)


async def spent_budget(cluster: Cluster, budgets: Sequence[Json], chosen: Sequence[Target]) -> str:
    """Return why a disruption budget will refuse one of several evictions, or an empty text.

    A dry run uses nothing up: it allows each of two where a budget allows one. What it allows now is read
    anew, as the copies that plans are made from may be a moment old. Raises the ClusterError of what is
    refused.
    """
    known = Disruptions(budgets)
    wanted = Counter(
        (target.pod["metadata"]["namespace"], name) for target in chosen for name in known.names(target.pod)
    )
    for (namespace, name), count in sorted(wanted.items()):
        if count == 1:
            continue  # the dry run has told
        try:
            budget = await cluster.get(DISRUPTION_BUDGETS, name, namespace=namespace)
        except NotFound:
            continue
        if (allowed := evictions_allowed(budget)) < count:
            return f"the disruption budget {namespace}/{name} allows {allowed} of {count} evictions"
    return ""


def is_for_a_budget(error: Throttled) -> bool:
    """Tell a disruption budget's refusal from a server that has too much to do."""
    causes = ((error.status or {}).get("details") or {}).get("causes") or []
    return any(cause.get("reason") == "DisruptionBudget" for cause in causes)
