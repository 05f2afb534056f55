"""Group pods into replicas: one pod each, or a group of pods."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.pods import group_of, has_engine, is_ready
from controller.observe.targets import Target, TargetKind
from controller.planning.snapshot import Replica

ReportAge = Callable[[tuple[str, str]], float | None]
"""Age in seconds of the latest response of a pod's engine, by (namespace, name); None without one."""


def replicas_of(target: Target, pods: Sequence[Json], report_age: ReportAge) -> tuple[Replica, ...]:
    """Return the replicas formed by pods, in pod order; pods of one replica must be adjacent."""
    if target.key.kind is not TargetKind.LEADER_WORKER_SET:
        return tuple(_replica([pod], report_age) for pod in pods)
    return tuple(_replica(list(group), report_age) for _, group in groupby(pods, key=group_of))


def _replica(pods: Sequence[Json], report_age: ReportAge) -> Replica:
    """Return a replica with the readiness of its leader. Pods without accelerators have no place."""
    leader = next((pod for pod in pods if has_engine(pod)), None)
    metadata = (leader or pods[0])["metadata"]
    holding = [pod for pod in pods if accelerators_of(pod["spec"])] or pods
    first, *others = [pod["spec"].get("nodeName") or None for pod in holding]
    return Replica(
        name=metadata["name"],
        node=first,
        ready=leader is not None and is_ready(leader),
        report_age_seconds=report_age((metadata["namespace"], metadata["name"])) if leader else None,
        further_nodes=tuple(node for node in others if node),
    )
