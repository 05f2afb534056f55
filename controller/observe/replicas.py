"""Group pods into replicas, and find those that should have started long ago, or wait for a node in vain.

A replica is one pod, or a group of pods. One that is not ready still counts as capacity. If plans replaced
them, a variant whose pods never become ready, for instance because of a wrong image, would be given all
accelerators that it can get.

Where a replica has waited so long that no node autoscaler seems to add a node, plans no longer count on such
nodes for these pods: the cloud may have no machine of the type, or something that planning does not know may
keep the pods off new nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from itertools import groupby
from typing import Final

from apiserver.kinds.identity import Key
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.pods import group_of, has_engine, is_ready, readiness_changed
from controller.observe.targets import ScaleTarget, TargetKind
from controller.planning.cluster import NodePool
from controller.planning.snapshot import Replica
from controller.planning.wording import count

ReportAge = Callable[[Key], float | None]
"""Age in seconds of the latest response of a pod's engine, by (namespace, name); None without one."""


def replicas_of(target: ScaleTarget, pods: Sequence[Json], report_age: ReportAge) -> tuple[Replica, ...]:
    """Return the replicas formed by pods, in pod order; pods of one replica must be adjacent."""
    if target.key.kind is not TargetKind.LEADER_WORKER_SET:
        return tuple(_replica(pod["metadata"]["name"], [pod], [pod], report_age) for pod in pods)
    return tuple(_group(target, number, list(group), report_age) for number, group in groupby(pods, group_of))


def _group(target: ScaleTarget, number: str, pods: Sequence[Json], report_age: ReportAge) -> Replica:
    """Return a group of pods, with the name of its leader, which may be the first one to be deleted.

    If only some of its templates have accelerators, it has no node before a pod of these has one.
    """
    leaders = (pod["metadata"]["name"] for pod in pods if has_engine(pod))
    holding = [pod for pod in pods if accelerators_of(pod["spec"])]
    if target.pods_per_replica == target.pods_in_all:
        holding = holding or [*pods]
    return _replica(next(leaders, f"{target.key.name}-{number}"), pods, holding, report_age)


def _replica(name: str, pods: Sequence[Json], holding: Sequence[Json], report_age: ReportAge) -> Replica:
    """Return a replica with the readiness of its leader, on the nodes of the pods that hold accelerators."""
    leader = next((pod for pod in pods if has_engine(pod)), None)
    first, *others = [pod["spec"].get("nodeName") or None for pod in holding] or [None]
    return Replica(
        name=name,
        node=first,
        ready=leader is not None and is_ready(leader),
        report_age_seconds=report_age((leader["metadata"]["namespace"], name)) if leader else None,
        further_nodes=tuple(node for node in others if node),
    )


_USUAL_STARTS: Final = 3.0
"""Multiple of the usual start-up time after which a replica is late."""

_LEAST_START_SECONDS: Final = 600.0
"""Minimum of that time in seconds, as by default for the rollout of a Deployment: the usual start-up time may
be unknown, and images may have to be pulled.
"""


def lateness(pods: Sequence[Json], *, start_seconds: float, now_seconds: float) -> str:
    """Return which replicas on nodes have not been ready for far longer than a start takes; empty if none.

    `start_seconds` is the usual start-up time.
    """
    limit_seconds = max(_LEAST_START_SECONDS, _USUAL_STARTS * start_seconds)
    late = [
        pod["metadata"]["name"]
        for pod in pods
        if has_engine(pod)
        and (since := _unready_since(pod)) is not None
        and now_seconds - since > limit_seconds
    ]
    if not late:
        return ""
    others = len(late) - 1
    who = f"{min(late)} and {count(others, 'more replica')} have" if others else f"{late[0]} has"
    return f"{who} not been ready for more than {limit_seconds:.0f} s"


def _unready_since(pod: Json) -> float | None:
    """Return since when a pod that started on a node has not been ready; None for any other."""
    started = (pod.get("status") or {}).get("startTime")
    if is_ready(pod) or not started:
        return None
    times = (started, readiness_changed(pod) or started)
    return max(datetime.fromisoformat(text).timestamp() for text in times)


_USUAL_LEADS: Final = 3.0
"""Multiple of the declared lead time of nodes after which a pod has waited too long."""

_LEAST_LEAD_SECONDS: Final = 900.0
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
    limit_seconds = max(_LEAST_LEAD_SECONDS, _USUAL_LEADS * max(leads))
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
