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
        return tuple(_replica(pod["metadata"]["name"], [pod], [pod], report_age) for pod in pods)
    return tuple(_group(target, number, list(group), report_age) for number, group in groupby(pods, group_of))


def _group(target: Target, number: str, pods: Sequence[Json], report_age: ReportAge) -> Replica:
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
