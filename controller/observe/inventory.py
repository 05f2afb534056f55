"""Build the list of nodes with accelerators, and how many of these unplanned workloads use."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.pods import is_present, is_stuck, target_of_pod
from controller.observe.scheduling import is_leaving, repellent_taints
from controller.observe.targets import TargetKey
from controller.planning.cluster import MOST_ACCELERATORS, NAME_FIELD, MovablePod, Node

NONE_MOVABLE: Final[Mapping[str, tuple[MovablePod, ...]]] = MappingProxyType({})
"""No movable pods of other workloads."""


def inventory(
    nodes: Sequence[Json],
    pods: Sequence[Json],
    planned: frozenset[TargetKey],
    movable: Mapping[str, tuple[MovablePod, ...]] = NONE_MOVABLE,
    *,
    now_seconds: float = 0.0,
) -> tuple[Node, ...]:
    """Return the nodes that have accelerators, up to MOST_ACCELERATORS each.

    `planned` are the targets that planning decides on; `movable` the other pods that may be evicted, by node.
    A pod that is stuck now, of whatever target, holds its accelerators like one of another workload.
    """
    held: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if not node:
            continue
        if is_stuck(pod, now_seconds) or (is_present(pod) and target_of_pod(pod) not in planned):
            held[node] += accelerators_of(pod["spec"])
    usable = (node for node in nodes if 0 < accelerators_on(node) <= MOST_ACCELERATORS)
    named = ((node, node["metadata"]["name"]) for node in usable)
    return tuple(_node(node, held[name], movable.get(name, ())) for node, name in named)


def oversized_nodes(nodes: Sequence[Json]) -> tuple[str, ...]:
    """Return a message for each node that is omitted because it has too many accelerators."""
    return tuple(
        f"node {node['metadata']['name']} is omitted: it reports {accelerators_on(node)} accelerators, and"
        f" can have at most {MOST_ACCELERATORS}; correct its status.allocatable"
        for node in nodes
        if accelerators_on(node) > MOST_ACCELERATORS
    )


def accelerators_on(node: Json) -> int:
    """Return the allocatable accelerators of a node."""
    return accelerators_in((node.get("status") or {}).get("allocatable") or {})


def type_of(node: Json) -> str:
    """Return the normalized type of a node's accelerators."""
    return product_of(node["metadata"].get("labels") or {})


def labels_of(node: Json) -> frozenset[tuple[str, str]]:
    """Return a node's labels, including the pseudo-label of its name."""
    metadata = node["metadata"]
    return frozenset({**(metadata.get("labels") or {}), NAME_FIELD: metadata["name"]}.items())


def _node(node: Json, held: int, movable: tuple[MovablePod, ...]) -> Node:
    spec, status = node.get("spec") or {}, node.get("status") or {}
    return Node(
        name=node["metadata"]["name"],
        accelerator=type_of(node),
        accelerators_allocatable=accelerators_on(node),
        # Anyone can assign a pod to a node, whatever it requests.
        accelerators_used_by_others=min(held, MOST_ACCELERATORS),
        movable=movable,
        labels=labels_of(node),
        taints=repellent_taints(spec.get("taints") or []),
        schedulable=not spec.get("unschedulable") and _is_ready(status) and not is_leaving(node),
    )


def _is_ready(status: Json) -> bool:
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    return conditions.get("Ready") == "True"
