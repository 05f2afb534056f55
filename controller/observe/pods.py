"""Pods as planning sees them: whose they are, what they hold, and which would go first."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from apiserver.schema.json import Json

Key = tuple[str, str]

DELETION_COST: Final = "controller.kubernetes.io/pod-deletion-cost"
"""Annotation by which a ReplicaSet chooses between pods that are alike in all that matters more."""

_FINISHED: Final = frozenset({"Succeeded", "Failed"})
_COST: Final = re.compile(r"-?[0-9]{1,10}\Z")
_PHASES: Final = {"Pending": 0, "Unknown": 1}


def is_present(pod: Json) -> bool:
    """Tell whether a pod holds its resources for good: neither finished nor being deleted."""
    finished = (pod.get("status") or {}).get("phase") in _FINISHED
    return not finished and not pod["metadata"].get("deletionTimestamp")


def is_ready(pod: Json) -> bool:
    """Tell whether a pod is ready to serve."""
    return _ready_time(pod) is not None


def deployment_of(pod: Json) -> Key | None:
    """Return namespace and name of the Deployment that a pod belongs to, or None.

    A Deployment names its ReplicaSets after itself and the hash of the template, which is also a label of
    each pod, so no look at ReplicaSets is needed.
    """
    metadata = pod["metadata"]
    digest = (metadata.get("labels") or {}).get("pod-template-hash")
    for owner in metadata.get("ownerReferences") or []:
        suffix = f"-{digest}"
        if (
            owner.get("controller")
            and owner["kind"] == "ReplicaSet"
            and digest
            and owner["name"].endswith(suffix)
        ):
            return metadata["namespace"], owner["name"].removesuffix(suffix)
    return None


def by_deployment(pods: Sequence[Json]) -> Mapping[Key, tuple[Json, ...]]:
    """Return the present pods of each Deployment in the order in which they would be removed."""
    groups: dict[Key, list[Json]] = defaultdict(list)
    for pod in pods:
        owner = deployment_of(pod)
        if owner is not None and is_present(pod):
            groups[owner].append(pod)
    return {owner: removal_order(group) for owner, group in groups.items()}


def deletion_cost(pod: Json) -> int:
    """Return what the annotation says; 0 for none, and for what no ReplicaSet understands."""
    text = (pod["metadata"].get("annotations") or {}).get(DELETION_COST, "0")
    return int(text) if _COST.match(text) else 0


def removal_order(pods: Sequence[Json], *, cost: Callable[[Json], int] = deletion_cost) -> tuple[Json, ...]:
    """Return pods in the order in which a ReplicaSet would delete them if they had these costs.

    Not bound, not running, not ready, cheap to delete, crowded with siblings, youngest first; ties by name.
    Source: `ActivePodsWithRanks` in `k8s.io/kubernetes/pkg/controller/controller_utils.go`.
    """
    ranks = removal_ranks(pods, cost=cost)
    by_name = sorted(pods, key=lambda pod: str(pod["metadata"]["name"]))
    by_age = sorted(by_name, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")), reverse=True)
    by_readiness = sorted(by_age, key=lambda pod: _ready_time(pod) or "", reverse=True)
    return tuple(sorted(by_readiness, key=lambda pod: ranks[pod["metadata"]["name"]]))


def removal_ranks(
    pods: Sequence[Json], *, cost: Callable[[Json], int] = deletion_cost
) -> Mapping[str, tuple[int, ...]]:
    """Return by name what decides before age does: who ranks lower is deleted before who ranks higher.

    Between equals a ReplicaSet goes by age in powers of ten, and then by chance.
    """
    siblings = Counter(pod["spec"].get("nodeName") for pod in pods)
    return {
        pod["metadata"]["name"]: (*standing(pod), cost(pod), -siblings[pod["spec"].get("nodeName")])
        for pod in pods
    }


def standing(pod: Json) -> tuple[int, int, int]:
    """Return what counts more than any cost: whether a pod is bound, runs and is ready."""
    phase = (pod.get("status") or {}).get("phase")
    return int(bool(pod["spec"].get("nodeName"))), _PHASES.get(str(phase), 2), int(is_ready(pod))


def _ready_time(pod: Json) -> str | None:
    for condition in (pod.get("status") or {}).get("conditions") or []:
        if condition["type"] == "Ready" and condition["status"] == "True":
            return str(condition.get("lastTransitionTime") or "")
    return None
