"""From pods to replicas: one pod each, or a group of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.pods import group_of, has_engine, is_ready
from controller.observe.targets import Target, TargetKind
from controller.planning.snapshot import Replica, ReplicaSample

Sample = Callable[[tuple[str, str]], ReplicaSample | None]
"""The newest sample of a pod by namespace and name."""


def replicas_of(target: Target, pods: Sequence[Json], sample: Sample) -> tuple[Replica, ...]:
    """Return the replicas that pods make, in the order of the pods: those of one replica stand together."""
    if target.key.kind is not TargetKind.LEADER_WORKER_SET:
        return tuple(_replica([pod], sample) for pod in pods)
    return tuple(_replica(list(group), sample) for _, group in groupby(pods, key=group_of))


def _replica(pods: Sequence[Json], sample: Sample) -> Replica:
    """Return a replica, which is as ready as its leader. Pods without accelerators hold no place."""
    leader = next((pod for pod in pods if has_engine(pod)), None)
    metadata = (leader or pods[0])["metadata"]
    holding = [pod for pod in pods if accelerators_of(pod["spec"])] or pods
    first, *others = [pod["spec"].get("nodeName") or None for pod in holding]
    return Replica(
        name=metadata["name"],
        node=first,
        ready=leader is not None and is_ready(leader),
        sample=sample((metadata["namespace"], metadata["name"])) if leader else None,
        further_nodes=tuple(node for node in others if node),
    )
