"""Hypothetical nodes: what further nodes of an accelerator type would look like."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controller.planning.cluster import NAME_FIELD, Node
from controller.planning.snapshot import Snapshot

OWN_LABELS: Final = frozenset({NAME_FIELD, "kubernetes.io/hostname"})
"""Labels whose value is unique to each node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Addition:
    """Hypothetical nodes of one shape."""

    accelerator: str
    accelerators: int
    nodes: int = 1


def new_nodes(snapshot: Snapshot, addition: Addition) -> Iterator[Node]:
    """Yield the nodes of an addition, with the labels and taints that all nodes of their type share."""
    alike = [node for node in snapshot.nodes if node.accelerator == addition.accelerator]
    names = {node.name for node in snapshot.nodes}
    number = 0
    for _ in range(addition.nodes):
        number += 1
        while (name := f"new-{addition.accelerator.lower()}-{number}") in names:
            number += 1
        yield Node(
            name=name,
            accelerator=addition.accelerator,
            accelerators_allocatable=addition.accelerators,
            labels=_shared_labels(alike) if alike else _selected_labels(snapshot, addition.accelerator),
            taints=frozenset.intersection(*(node.taints for node in alike)) if alike else frozenset(),
        )


def _shared_labels(nodes: Sequence[Node]) -> frozenset[tuple[str, str]]:
    """Return the labels that all nodes have in common, without those that identify a node."""
    shared = frozenset.intersection(*(node.labels for node in nodes))
    return frozenset(label for label in shared if label[0] not in OWN_LABELS)


def _selected_labels(snapshot: Snapshot, accelerator: str) -> frozenset[tuple[str, str]]:
    """Return the labels that variants of a type select, for use when no node of that type exists."""
    wanted = [variant.node_selector for variant in snapshot.variants if variant.accelerator == accelerator]
    return frozenset(dict(label for selector in wanted for label in sorted(selector)).items())
