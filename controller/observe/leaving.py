"""The removal order of a variant's pods, and the annotations that make its ReplicaSet follow it.

A ReplicaSet first deletes pods that are not bound, not running or not ready, whatever their cost; then it
uses the annotation `controller.kubernetes.io/pod-deletion-cost`. Where that leaves a choice, the pods whose
removal frees most are chosen here. A value is ours as long as a second annotation has the same value: anyone
who writes another one takes it over.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_of
from controller.observe.orders import PREFIX
from controller.observe.pods import (
    DELETION_COST,
    deletion_cost,
    is_present,
    removal_order,
    removal_ranks,
    standing,
)
from controller.planning.cluster import Node

OURS: Final = f"{PREFIX}pod-deletion-cost"
"""Annotation next to a cost that we wrote, with the same value."""

_GOES_FIRST: Final = "-1"
"""Cost of pods to delete first; pods without the annotation have cost 0."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Room:
    """A node and its free accelerators."""

    is_schedulable: bool
    accelerators: int
    free: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Mark:
    """The changes to one pod's annotations; None removes one."""

    namespace: str
    name: str
    resource_version: str
    """Resource version of the observed pod: a later write by anyone else wins."""

    annotations: Mapping[str, str | None]


def rooms(nodes: Sequence[Node], pods: Sequence[Json]) -> Mapping[str, Room]:
    """Return the free accelerators of each node, after all pods."""
    held: Counter[str] = Counter()
    for pod in pods:
        if pod["spec"].get("nodeName") and is_present(pod):
            held[pod["spec"]["nodeName"]] += accelerators_of(pod["spec"])
    return {
        node.name: Room(
            is_schedulable=node.schedulable,
            accelerators=node.accelerators_allocatable,
            free=node.accelerators_allocatable - held[node.name],
        )
        for node in nodes
    }


def leaving_order(pods: Sequence[Json], space: Mapping[str, Room]) -> tuple[Json, ...]:
    """Return the pods of a Deployment in the order in which to remove them.

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
            return (*standing(pod), _others_cost(pod), 1)
        return (*standing(pod), _others_cost(pod), 0, *_worth(_node(pod), own[_node(pod)], space))

    return tuple(sorted(usual, key=turn))


def marks(pods: Sequence[Json], keep: int) -> tuple[Mark, ...]:
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
        return not _is_theirs(pod) and (in_doubt or _is_ours(pod))

    going = [change for pod in pods[:cut] for change in _change(pod, goes=goes(pod))]
    return (*going, *(change for pod in pods[cut:] for change in _change(pod, goes=False)))


def _change(pod: Json, *, goes: bool) -> list[Mark]:
    """Return the annotation change for one pod; empty if none is needed."""
    present = pod["metadata"].get("annotations") or {}
    wanted: dict[str, str | None]
    if goes and not _is_ours(pod):
        wanted = {DELETION_COST: _GOES_FIRST, OURS: _GOES_FIRST}
    elif not goes and OURS in present:
        wanted = {OURS: None, DELETION_COST: None} if _is_ours(pod) else {OURS: None}
    else:
        return []
    metadata = pod["metadata"]
    return [
        Mark(
            namespace=metadata["namespace"],
            name=metadata["name"],
            resource_version=metadata.get("resourceVersion", ""),
            annotations=wanted,
        )
    ]


def _worth(node: str, own: Sequence[int], space: Mapping[str, Room]) -> tuple[int, int, int, str]:
    """Return the sort key of a node's pods in the removal order."""
    if not any(own):
        return 0, 0, 0, ""  # pods without accelerators free none
    room = space.get(node)
    if room is None or not room.is_schedulable:
        return 0, 0, 0, node
    free = room.free + sum(own)
    return (1, len(own), -free, node) if free >= room.accelerators else (2, -free, len(own), node)


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
    """Return the hash of the template from which a Deployment created a pod; empty for other pods."""
    return str((pod["metadata"].get("labels") or {}).get("pod-template-hash") or "")
