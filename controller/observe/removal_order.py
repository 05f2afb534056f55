"""The removal order of a variant's pods, and the annotations that make its ReplicaSet follow it.

A ReplicaSet first deletes pods that are not bound, not running or not ready, whatever their cost; then it
uses the annotation `controller.kubernetes.io/pod-deletion-cost`. Where that leaves a choice, the pods whose
removal frees most are chosen here. A value is ours as long as a second annotation has the same value: anyone
who writes another one takes it over.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.kinds.annotations import PREFIX
from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.pods import DELETION_COST, deletion_cost, removal_order, removal_ranks, state_rank
from controller.observe.targets import GROUP_REVISION
from controller.planning.cluster import Node

OURS: Final = f"{PREFIX}pod-deletion-cost"
"""Annotation next to a cost that we wrote, with the same value."""

_GOES_FIRST: Final = "-1"
"""Cost of pods to delete first; pods without the annotation have cost 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeletionMark:
    """The changes to one pod's annotations; None removes one."""

    namespace: str
    name: str
    resource_version: str
    """Resource version of the observed pod: a later write by anyone else wins."""

    annotations: Mapping[str, str | None]


def leaving_order(pods: Sequence[Json], nodes: Mapping[str, Node]) -> tuple[Json, ...]:
    """Return the pods of a Deployment in the order in which to remove them.

    `nodes` are by name, and count the accelerators of all their pods as used by others.

    Pods on nodes that accept no new pods come first; then those whose nodes become empty, fewest pods first;
    then those that leave the largest room. During a rollout the ReplicaSets' own order is used, because there
    are two of them.
    """
    usual = removal_order(pods, cost=_others_cost)
    if is_rolling(pods):
        return usual
    own: dict[str, list[int]] = defaultdict(list)
    for pod in pods:
        if not _is_theirs(pod):
            own[_node(pod)].append(accelerators_of(pod["spec"]))

    def turn(pod: Json) -> tuple[object, ...]:
        if _is_theirs(pod):
            return (*state_rank(pod), _others_cost(pod), 1)
        return (*state_rank(pod), _others_cost(pod), 0, *_worth(_node(pod), own[_node(pod)], nodes))

    return tuple(sorted(usual, key=turn))


def marks(pods: Sequence[Json], keep: int) -> tuple[DeletionMark, ...]:
    """Return the annotations to write so that the last `keep` pods in `leaving_order` stay.

    A pod is marked if the ReplicaSet might otherwise delete one on another node instead.
    """
    cut = 0 if is_rolling(pods) else max(0, len(pods) - keep)
    ranks = removal_ranks(pods, cost=_others_cost)
    lowest: dict[str, tuple[int, ...]] = {}
    for pod in pods[cut:]:
        rank = ranks[pod["metadata"]["name"]]
        lowest[_node(pod)] = min(rank, lowest.get(_node(pod), rank))

    def goes(pod: Json) -> bool:
        rank = ranks[pod["metadata"]["name"]]
        in_doubt = any(other <= rank for node, other in lowest.items() if node != _node(pod))
        # A mark stays as long as its pod is to go: a doubt that comes and goes would cause writes.
        return not _is_theirs(pod) and (in_doubt or _is_ours(pod))

    going = [change for pod in pods[:cut] for change in _change(pod, goes=goes(pod))]
    return (*going, *(change for pod in pods[cut:] for change in _change(pod, goes=False)))


def _change(pod: Json, *, goes: bool) -> list[DeletionMark]:
    """Return the annotation change for one pod; empty if none is needed."""
    present = pod["metadata"].get("annotations") or {}
    annotations: dict[str, str | None]
    if goes and not _is_ours(pod):
        annotations = {DELETION_COST: _GOES_FIRST, OURS: _GOES_FIRST}
    elif not goes and OURS in present:
        annotations = {OURS: None, DELETION_COST: None} if _is_ours(pod) else {OURS: None}
    else:
        return []
    metadata = pod["metadata"]
    return [
        DeletionMark(
            namespace=metadata["namespace"],
            name=metadata["name"],
            resource_version=metadata.get("resourceVersion", ""),
            annotations=annotations,
        )
    ]


def _worth(name: str, own: Sequence[int], nodes: Mapping[str, Node]) -> tuple[int, int, int, str]:
    """Return the sort key of a node's pods in the removal order."""
    if not any(own):
        return 0, 0, 0, ""  # pods without accelerators free none
    node = nodes.get(name)
    if node is None or not node.schedulable:
        return 0, 0, 0, name
    free = node.accelerators_allocatable - node.accelerators_used_by_others + sum(own)
    # The room if all own pods leave the node: others keep it from becoming empty.
    is_emptied = free >= node.accelerators_allocatable
    return (1, len(own), -free, name) if is_emptied else (2, -free, len(own), name)


def _node(pod: Json) -> str:
    return str(pod["spec"].get("nodeName") or "")


def _others_cost(pod: Json) -> int:
    return 0 if _is_ours(pod) else deletion_cost(pod)


def _is_ours(pod: Json) -> bool:
    present = pod["metadata"].get("annotations") or {}
    return OURS in present and present.get(DELETION_COST) == present[OURS]


def _is_theirs(pod: Json) -> bool:
    return DELETION_COST in (pod["metadata"].get("annotations") or {}) and not _is_ours(pod)


def is_rolling(pods: Sequence[Json]) -> bool:
    """Return whether the pods were created from more than one template."""
    return len(set(map(template_of, pods))) > 1


def template_of(pod: Json) -> str:
    """Return the hash of the template of a Deployment's pod, or of a group's; empty for other pods."""
    labels = pod["metadata"].get("labels") or {}
    return str(labels.get("pod-template-hash") or labels.get(GROUP_REVISION) or "")
