"""Replicas that have waited for a node for so long that no node autoscaler seems to add one.

The cloud may have no machine of the type, or something that planning does not know may keep the pods off new
nodes. Plans then no longer count on such nodes for these pods.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json
from controller.observe.pods import group_of
from controller.planning.cluster import NodePool

_USUAL_LEADS: Final = 3.0
"""Multiple of the declared lead time of nodes after which a pod has waited too long."""

_LEAST_SECONDS: Final = 900.0
"""Minimum of that time in seconds: the Cluster Autoscaler and Karpenter give up a node that has not joined
after 15 minutes.
"""


def stalled_replicas(
    pods: Sequence[Json], pools: Sequence[NodePool], accelerator: str, *, now_seconds: float
) -> int:
    """Return how many replicas of a variant without any node have waited too long for one.

    `pools` are all node pools; those with the variant's accelerators determine how long a node takes. If no
    node of them can be added, there is nothing to wait for, and the result is 0.
    """
    leads = [
        pool.lead_seconds for pool in pools if pool.nodes_addable and accelerator in ("", pool.accelerator)
    ]
    if not leads:
        return 0
    limit_seconds = max(_LEAST_SECONDS, _USUAL_LEADS * max(leads))
    bound = {group_of(pod) for pod in pods if pod["spec"].get("nodeName")}
    waiting = {
        group_of(pod)
        for pod in pods
        if (since := _unscheduled_since(pod)) is not None and now_seconds - since > limit_seconds
    }
    return len(waiting - bound)


def _unscheduled_since(pod: Json) -> float | None:
    """Return since when the scheduler has found no node for a pod; None for one that it does not consider."""
    if pod["spec"].get("schedulingGates"):
        return None
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "PodScheduled" and condition["status"] == "False":
            since = condition.get("lastTransitionTime")
            return datetime.fromisoformat(since).timestamp() if since else None
    return None
