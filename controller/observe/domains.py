"""Topology domains of all nodes: kube-scheduler also counts nodes without accelerators."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from apiserver.schema.json import Json
from controller.observe.inventory import accelerators_on, labels_of, type_of
from controller.planning.cluster import MOST_ACCELERATORS, Node, NodeRequirement
from controller.planning.inventory import meets

_Looks = tuple[frozenset[tuple[str, str]], tuple[tuple[NodeRequirement, ...], ...]]


class Domains:
    """The nodes of a cluster, by the labels that define topology domains."""

    def __init__(self, nodes: Sequence[Json]) -> None:
        self._nodes = tuple(map(_node, nodes))
        self.keys = frozenset(key for node in self._nodes for key, _ in node.labels)
        """All labels that any node has."""

        self._asked_for: dict[_Looks, tuple[Node, ...]] = {}

    @property
    def nodes(self) -> tuple[Node, ...]:
        """All nodes."""
        return self._nodes

    def asked_for(self, pod_spec: Json, terms: tuple[tuple[NodeRequirement, ...], ...]) -> tuple[Node, ...]:
        """Return the nodes that match the node selector and node affinity of pods."""
        selector = frozenset((pod_spec.get("nodeSelector") or {}).items())
        if (selector, terms) not in self._asked_for:
            self._asked_for[selector, terms] = tuple(
                node for node in self._nodes if selector <= node.labels and meets(node, terms)
            )
        return self._asked_for[selector, terms]


def with_accelerators(nodes: Sequence[Node], accelerator: str) -> tuple[Node, ...]:
    """Return the nodes that have accelerators of a type."""
    return tuple(
        node for node in nodes if accelerator in ("", node.accelerator) and node.accelerators_allocatable > 0
    )


def domains_of(nodes: Sequence[Node], key: str) -> frozenset[str]:
    """Return the values of a label over some nodes."""
    return frozenset(dict(node.labels)[key] for node in nodes if key in dict(node.labels))


def most_pods(nodes: Sequence[Node], key: str, *, accelerators: int) -> int:
    """Return how many pods of a size fit in the largest domain when it is empty."""
    counts: Counter[str] = Counter()
    for node in nodes:
        counts[dict(node.labels).get(key, "")] += node.accelerators_allocatable // accelerators
    return max(counts.values(), default=0)


def _node(node: Json) -> Node:
    accelerators = accelerators_on(node)
    return Node(
        name=node["metadata"]["name"],
        accelerator=type_of(node),
        accelerators_allocatable=accelerators if accelerators <= MOST_ACCELERATORS else 0,
        labels=labels_of(node),
    )
