"""Pods as planning needs them: their targets, their state, and their removal order."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from apiserver.schema.json import Json
from controller.observe.targets import GROUP_INDEX, SET_NAME, WORKER_INDEX, TargetKey, TargetKind

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet chooses between pods that do not differ in more important criteria."""

SELECTED_BY: Final = "stowplan.dev/selected-by"
"""Pseudo-field in a pod's metadata for the target whose scale selects it, if owners do not identify it."""

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_STUCK_SECONDS: Final = 60.0
"""How much longer than its grace period a pod may take to disappear."""

_COST: Final = re.compile(r"-?[0-9]{1,10}\Z")
_ORDINAL: Final = re.compile(r"[0-9]{1,9}\Z")
_PHASES: Final = {"Pending": 0, "Unknown": 1}


def is_present(pod: Json) -> bool:
    """Return whether a pod occupies its resources: neither finished nor being deleted."""
    return not _is_finished(pod) and not pod["metadata"].get("deletionTimestamp")


def is_stuck(pod: Json, now_seconds: float) -> bool:
    """Return whether a pod should have ended, its grace period included, and still occupies its resources.

    The reason can be a finalizer, or a process that cannot be killed. The scheduler counts such a pod.
    """
    due = pod["metadata"].get("deletionTimestamp")
    if not due or _is_finished(pod):
        return False
    return now_seconds - datetime.fromisoformat(due).timestamp() > _STUCK_SECONDS


def _is_finished(pod: Json) -> bool:
    return (pod.get("status") or {}).get("phase") in _FINISHED


def is_ready(pod: Json) -> bool:
    """Return whether a pod is ready to serve."""
    return _ready_time(pod) is not None


def readiness_changed(pod: Json) -> str:
    """Return when a pod last became ready or unready, as a timestamp; empty if unknown."""
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Ready" and condition.get("lastTransitionTime"):
            return str(condition["lastTransitionTime"])
    return ""


def target_of_pod(pod: Json) -> TargetKey | None:
    """Return the target of a pod, or None, without reading the objects in between.

    A Deployment names its ReplicaSets after itself and the hash of the template, which is also a label of
    each pod. A LeaderWorkerSet has a StatefulSet of its own name for the leaders, and one for the workers of
    each leader, named after that leader.
    """
    metadata = pod["metadata"]
    selected: TargetKey | None = metadata.get(SELECTED_BY)
    if selected is not None:
        return selected
    labels = metadata.get("labels") or {}
    for owner in metadata.get("ownerReferences") or []:
        if owner.get("controller") and str(owner.get("apiVersion", "apps/v1")).startswith("apps/"):
            maker = _maker(owner["kind"], owner["name"], labels)
            if maker:
                return TargetKey(maker[0], metadata["namespace"], maker[1])
    return None


def _maker(kind: str, name: str, labels: Mapping[str, str]) -> tuple[TargetKind, str] | None:
    suffix = f"-{labels.get('pod-template-hash', '')}"
    if kind == "ReplicaSet" and len(suffix) > 1 and name.endswith(suffix):
        return TargetKind.DEPLOYMENT, name.removesuffix(suffix)
    if kind != "StatefulSet":
        return None
    groups = labels.get(SET_NAME)
    if groups and name in (groups, f"{groups}-{labels.get(GROUP_INDEX)}"):
        return TargetKind.LEADER_WORKER_SET, groups
    return TargetKind.STATEFUL_SET, name


def by_target(pods: Sequence[Json]) -> Mapping[TargetKey, tuple[Json, ...]]:
    """Return the present pods of each target in removal order."""
    groups: dict[TargetKey, list[Json]] = defaultdict(list)
    for pod in pods:
        target = target_of_pod(pod)
        if target is not None and is_present(pod):
            groups[target].append(pod)
    return {target: _REMOVAL[target.kind](group) for target, group in groups.items()}


def has_engine(pod: Json) -> bool:
    """Return whether a pod's engine reports for its replica: in a group only the leader's does."""
    labels: Mapping[str, str] = pod["metadata"].get("labels") or {}
    return labels.get(WORKER_INDEX, "0") == "0"


def group_of(pod: Json) -> str:
    """Return an identifier of a pod's replica, unique within its target."""
    name = str(pod["metadata"]["name"])
    return (pod["metadata"].get("labels") or {}).get(GROUP_INDEX) or name


def group_number(pod: Json) -> int:
    """Return the index of a pod's group; 0 for a pod of no group."""
    return _ordinal((pod["metadata"].get("labels") or {}).get(GROUP_INDEX, ""))


def ready_ordinals(pods: Sequence[Json], first: int) -> tuple[int, ...]:
    """Return the ordinals, less `first`, of a StatefulSet's ready pods or of groups with a ready leader.

    Pods with lower ordinals are not counted: a StatefulSet whose first ordinal was raised deletes them.
    """
    ready = sorted(_ordinal(group_of(pod)) for pod in pods if has_engine(pod) and is_ready(pod))
    return tuple(ordinal - first for ordinal in ready if ordinal >= first)


def deletion_cost(pod: Json) -> int:
    """Return the pod deletion cost; 0 if missing or invalid."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return int(text) if _COST.match(text) else 0


def removal_order(pods: Sequence[Json], *, cost: Callable[[Json], int] = deletion_cost) -> tuple[Json, ...]:
    """Return pods in the order in which a ReplicaSet would delete them with these costs.

    Unbound, not running, not ready, low cost, many siblings on the node, youngest first; ties by name.
    Source: `ActivePodsWithRanks` in `k8s.io/kubernetes/pkg/controller/controller_utils.go`.
    """
    ranks = removal_ranks(pods, cost=cost)
    by_name = sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))
    by_age = sorted(by_name, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)
    by_readiness = sorted(by_age, key=lambda pod: _ready_time(pod) or "", reverse=True)
    return tuple(sorted(by_readiness, key=lambda pod: ranks[pod["metadata"]["name"]]))


def _by_ordinal(pods: Sequence[Json]) -> tuple[Json, ...]:
    """Return pods as a StatefulSet removes them: the highest ordinal first, whatever their state.

    Pods without a node come before all others: one that is kept takes the place of one that is removed, which
    is equivalent to having removed it and kept the other.
    """
    by_number = sorted(pods, key=lambda pod: -_ordinal(pod["metadata"]["name"]))
    return tuple(sorted(by_number, key=lambda pod: bool(pod["spec"].get("nodeName"))))


def _by_group(pods: Sequence[Json]) -> tuple[Json, ...]:
    """Return pods as a LeaderWorkerSet removes them: whole groups, each with its leader first."""
    groups: dict[str, list[Json]] = defaultdict(list)
    for pod in pods:
        groups[group_of(pod)].append(pod)
    numbered = sorted(groups, key=lambda index: -_ordinal(index))
    in_order = sorted(numbered, key=lambda index: any(pod["spec"].get("nodeName") for pod in groups[index]))
    return tuple(pod for index in in_order for pod in sorted(groups[index], key=_worker_index))


def _worker_index(pod: Json) -> int:
    return _ordinal((pod["metadata"].get("labels") or {}).get(WORKER_INDEX, ""))


def _ordinal(name: str) -> int:
    match = _ORDINAL.search(name)
    return int(match[0]) if match else 0


def removal_ranks(
    pods: Sequence[Json], *, cost: Callable[[Json], int] = deletion_cost
) -> Mapping[str, tuple[int, ...]]:
    """Return the criteria that precede age, by pod name: lower ranks are deleted first.

    Among equal ranks a ReplicaSet compares ages in powers of ten, and then chooses randomly.
    """
    siblings = Counter(pod["spec"].get("nodeName") for pod in pods)
    return {
        pod["metadata"]["name"]: (*state_rank(pod), cost(pod), -siblings[pod["spec"].get("nodeName")])
        for pod in pods
    }


def state_rank(pod: Json) -> tuple[int, int, int]:
    """Return the criteria that precede any cost: whether a pod is bound, runs and is ready."""
    phase = (pod.get("status") or {}).get("phase")
    return int(bool(pod["spec"].get("nodeName"))), _PHASES.get(str(phase), 2), int(is_ready(pod))


def _ready_time(pod: Json) -> str | None:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Ready" and condition["status"] == "True":
            return str(condition.get("lastTransitionTime") or "")
    return None


_REMOVAL: Final[Mapping[TargetKind, Callable[[Sequence[Json]], tuple[Json, ...]]]] = {
    TargetKind.DEPLOYMENT: removal_order,
    TargetKind.STATEFUL_SET: _by_ordinal,
    TargetKind.LEADER_WORKER_SET: _by_group,
    TargetKind.SCALED: removal_order,
}
