"""Nodes with accelerators, and how much of them workloads hold that are not ours to plan."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from apiserver.schema.json import Json
from controller.observe.accelerators import accelerators_in, accelerators_of, product_of
from controller.observe.pods import Key, deployment_of, is_present
from controller.observe.scheduling import NAME_FIELD, repellent_taints
from controller.planning.cluster import MOST_ACCELERATORS, MovablePod, Node

NONE_MOVABLE: Final[Mapping[str, tuple[MovablePod, ...]]] = MappingProxyType({})
"""Nobody else's pods may be evicted."""


def inventory(
    nodes: Sequence[Json],
    pods: Sequence[Json],
    planned: frozenset[Key],
    movable: Mapping[str, tuple[MovablePod, ...]] = NONE_MOVABLE,
) -> tuple[Node, ...]:
    """Return the nodes that have accelerators, and no more than anybody builds.

    `planned` are the Deployments that planning decides on, `movable` those of the other pods that may be
    evicted, by node.
    """
    held: Counter[str] = Counter()
    for pod in pods:
        node = pod["spec"].get("nodeName")
        if node and is_present(pod) and deployment_of(pod) not in planned:
            held[node] += accelerators_of(pod["spec"])
    usable = (node for node in nodes if 0 < _accelerators(node) <= MOST_ACCELERATORS)
    named = ((node, node["metadata"]["name"]) for node in usable)
    return tuple(_node(node, held[name], movable.get(name, ())) for node, name in named)


def oversized(nodes: Sequence[Json]) -> tuple[str, ...]:
    """Return a sentence for each node that is left out for having too many accelerators."""
    return tuple(
        f"node {node['metadata']['name']} is left out: it says that it has {_accelerators(node)}"
        f" accelerators, and can have at most {MOST_ACCELERATORS}; correct its status.allocatable"
        for node in nodes
        if _accelerators(node) > MOST_ACCELERATORS
    )


def _accelerators(node: Json) -> int:
    return accelerators_in((node.get("status") or {}).get("allocatable") or {})


def _node(node: Json, held: int, movable: tuple[MovablePod, ...]) -> Node:
    name, labels = node["metadata"]["name"], node["metadata"].get("labels") or {}
    spec, status = node.get("spec") or {}, node.get("status") or {}
    return Node(
        name=name,
        accelerator=product_of(labels),
        accelerators_allocatable=_accelerators(node),
        accelerators_used_by_others=held,
        movable=movable,
        labels=frozenset({**labels, NAME_FIELD: name}.items()),
        taints=repellent_taints(spec.get("taints") or []),
        schedulable=not spec.get("unschedulable") and _is_ready(status),
    )


def _is_ready(status: Json) -> bool:
    conditions = {item["type"]: item["status"] for item in status.get("conditions") or []}
    return conditions.get("Ready") == "True"
