"""Which variants may use which nodes, and the nodes that look alike to all of them."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING

from controller.planning.cluster import Node
from controller.planning.problem import Bin

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.cluster import NodePool, NodeRequirement, Taint, Toleration
    from controller.planning.snapshot import Variant

    _Kind = tuple[int, tuple[tuple[str, str], ...]]
    """Of nodes: the group of variants that may use them, and the domains that matter to those."""


def admits(node: Node, variant: Variant) -> bool:
    """Tell whether a new pod of the variant may go to the node, whatever is free there."""
    return (
        node.schedulable
        and topology_keys(variant) <= {key for key, _ in node.labels}
        and variant.accelerator in ("", node.accelerator)
        and attracts(node, variant.node_selector, variant.node_affinity, variant.tolerations)
    )


def attracts(
    node: Node,
    selector: frozenset[tuple[str, str]],
    affinity: Sequence[Sequence[NodeRequirement]],
    consents: frozenset[Toleration],
) -> bool:
    """Tell whether pods with a node selector, required affinity and tolerations may be put on a node."""
    return (
        selector <= node.labels
        and meets(node, affinity)
        and all(any(tolerates(consent, taint) for consent in consents) for taint in node.taints)
    )


def topology_keys(variant: Variant) -> frozenset[str]:
    """Return the labels by which the variant's pods are spread or kept together: nodes need them."""
    return frozenset({variant.together_in, variant.spread.topology_key if variant.spread else ""} - {""})


def meets(node: Node, terms: Sequence[Sequence[NodeRequirement]]) -> bool:
    """Tell whether a node meets all requirements of at least one term; without terms it does."""
    labels = dict(node.labels)
    return not terms or any(term and all(_meets(labels, item) for item in term) for term in terms)


def _meets(labels: Mapping[str, str], requirement: NodeRequirement) -> bool:
    """Tell whether labels meet one requirement, as core/v1 says: numbers are compared as numbers."""
    value = labels.get(requirement.key)
    match requirement.operator:
        case "In":
            return value in requirement.values
        case "NotIn":
            return value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
        case "Gt" | "Lt" as operator:
            bounds = requirement.values
            if value is None or len(bounds) != 1 or not (_is_number(value) and _is_number(bounds[0])):
                return False
            return int(value) > int(bounds[0]) if operator == "Gt" else int(value) < int(bounds[0])


def _is_number(text: str) -> bool:
    return text.removeprefix("-").isdecimal()


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Tell whether a toleration matches a taint, as core/v1 says."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def bins(
    nodes: Sequence[Node], variants: Sequence[Variant], pools: Sequence[NodePool] = ()
) -> tuple[tuple[Bin, ...], tuple[int | None, ...]]:
    """Group the nodes by the variants that may use them; replicas without accelerators need no node.

    Where some of them spread their pods, each domain has bins of its own.

    Returns the bins, and the bin that each node pool's nodes would be in; None where nobody could use them.
    """
    groups: dict[_Kind, list[int]] = defaultdict(list)
    everywhere = [*nodes, *(node_to_come(pool) for pool in pools)]
    eligible, askers = _eligible(everywhere, variants)
    keys = [_spread_keys(members, variants) for members in askers]
    kinds = [
        (
            group,
            tuple(sorted(label for label in node.labels if label[0] in keys[group])) if keys[group] else (),
        )
        for node, group in zip(everywhere, eligible, strict=True)
    ]
    for index, kind in enumerate(kinds):
        if askers[kind[0]]:
            groups[kind] += [index] if index < len(nodes) else []
    in_order = sorted(groups, key=lambda kind: (askers[kind[0]], kind[1]))
    order = {kind: position for position, kind in enumerate(in_order)}
    found = tuple(
        Bin(
            nodes=tuple(groups[kind]),
            sizes=tuple(sorted({variants[index].accelerators_per_pod for index in askers[kind[0]]})),
            variants=askers[kind[0]],
        )
        for kind in in_order
    )
    return found, tuple(order.get(kind) for kind in kinds[len(nodes) :])


def _spread_keys(askers: Sequence[int], variants: Sequence[Variant]) -> frozenset[str]:
    """Return the labels of the topologies that some of the askers spread their pods over."""
    return frozenset(spread.topology_key for v in askers if (spread := variants[v].spread))


def node_to_come(pool: NodePool) -> Node:
    """Return what a node of a pool will look like."""
    return Node(
        name=pool.name,
        accelerator=pool.accelerator,
        accelerators_allocatable=pool.accelerators_per_node,
        labels=pool.labels,
        taints=pool.taints,
    )


def _eligible(nodes: Sequence[Node], variants: Sequence[Variant]) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return for each node the number of a group, and the variants of each group: those that it admits.

    What looks alike is compared once.
    """
    askers: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, variant in enumerate(variants):
        if variant.accelerators_per_replica:
            looks = (
                variant.accelerator,
                variant.node_selector,
                variant.node_affinity,
                variant.tolerations,
                topology_keys(variant),
            )
            askers[looks].append(index)
    keys = {key for variant in variants for key, _ in variant.node_selector}
    keys |= {item.key for variant in variants for term in variant.node_affinity for item in term}
    # Of these labels only the presence matters here, and there are as many values as racks.
    needed = frozenset[str]().union(*(topology_keys(variant) for variant in variants)) - keys
    known: dict[tuple[object, ...], int] = {}
    numbers: dict[tuple[int, ...], int] = {}
    result = []
    for node in nodes:
        labels = frozenset(label for label in node.labels if label[0] in keys)
        present = frozenset(key for key, _ in node.labels if key in needed) if needed else needed
        kind = (node.schedulable, node.accelerator, labels, present, node.taints)
        if kind not in known:
            matching = [group for group in askers.values() if admits(node, variants[group[0]])]
            members = tuple(sorted(index for group in matching for index in group))
            known[kind] = numbers.setdefault(members, len(numbers))
        result.append(known[kind])
    return result, [*numbers]
