"""Which variants may use which nodes, and the nodes that look alike to all of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.problem import Bin

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.snapshot import Node, Taint, Toleration, Variant


def admits(node: Node, variant: Variant) -> bool:
    """Tell whether a new replica of the variant may go to the node, whatever is free there."""
    return (
        node.schedulable
        and variant.accelerator in ("", node.accelerator)
        and variant.node_selector <= node.labels
        and all(any(tolerates(t, taint) for t in variant.tolerations) for taint in node.taints)
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration matches a taint, as core/v1 says."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def bins(nodes: Sequence[Node], variants: Sequence[Variant]) -> tuple[Bin, ...]:
    """Group the nodes by the variants that may use them; replicas without accelerators need no node."""
    groups: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for index, eligible in enumerate(_eligible(nodes, variants)):
        if eligible:
            groups[eligible].append(index)
    return tuple(
        Bin(
            nodes=tuple(groups[eligible]),
            sizes=tuple(sorted({variants[index].accelerators_per_replica for index in eligible})),
            variants=eligible,
        )
        for eligible in sorted(groups)
    )


def _eligible(nodes: Sequence[Node], variants: Sequence[Variant]) -> list[tuple[int, ...]]:
    """Return for each node the variants that it admits; what looks alike is compared once."""
    askers: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, variant in enumerate(variants):
        if variant.accelerators_per_replica:
            askers[variant.accelerator, variant.node_selector, variant.tolerations].append(index)
    keys = {key for variant in variants for key, _ in variant.node_selector}
    known: dict[tuple[object, ...], tuple[int, ...]] = {}
    result = []
    for node in nodes:
        labels = frozenset(label for label in node.labels if label[0] in keys)
        looks = (node.schedulable, node.accelerator, labels, node.taints)
        if looks not in known:
            matching = [group for group in askers.values() if admits(node, variants[group[0]])]
            known[looks] = tuple(sorted(index for group in matching for index in group))
        result.append(known[looks])
    return result
