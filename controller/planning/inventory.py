"""Nodes grouped into bins by the variants that may use them, their topology domains, and hypothetical nodes.

Domains are read as far as pods refer to them: zones to spread over, racks to stay within. Hypothetical nodes
are what further nodes of an accelerator type would look like.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from controller.planning.cluster import NAME_FIELD, Node, NodePool, NodeRequirement, Taint, Toleration
from controller.planning.pod_rules import SpreadTerms, Topology
from controller.planning.problem import NO_DOMAIN, Bin
from controller.planning.snapshot import Snapshot, Variant

_INTEGER = re.compile(r"([+-]?)0*([0-9]{1,19})")
"""Text of an integer that may have 64 bits. Python refuses to convert text of thousands of digits."""

_Kind = tuple[int, tuple[tuple[str, str], ...]]
"""Kind of a node: its group of eligible variants, and its labels for the topologies of their rules."""


def admits(node: Node, variant: Variant) -> bool:
    """Return whether a new pod of the variant may be placed on the node, regardless of free accelerators."""
    return (
        node.schedulable
        and topology_keys(variant) == known_labels(node, topology_keys(variant))
        and variant.accelerator in ("", node.accelerator)
        and satisfies(node, variant.node_selector, variant.node_affinity, variant.tolerations)
    )


def satisfies(
    node: Node,
    selector: frozenset[tuple[str, str]],
    affinity: Sequence[Sequence[NodeRequirement]],
    tolerations: frozenset[Toleration],
) -> bool:
    """Return whether a node satisfies a node selector, required affinity and tolerations."""
    return (
        selector <= node.labels
        and meets(node, affinity)
        and all(any(tolerates(toleration, taint) for toleration in tolerations) for taint in node.taints)
    )


def topology_keys(variant: Variant) -> frozenset[str]:
    """Return the labels whose domains matter for the variant's pods; nodes must have them."""
    rule = variant.rules.spread
    return frozenset({variant.together_in, rule.topology_key if rule else ""} - {""})


def meets(node: Node, terms: Sequence[Sequence[NodeRequirement]]) -> bool:
    """Return whether a node meets all requirements of at least one term; True without terms.

    Of a node to be added, whose labels may have several values, it is enough that one of them does.
    """
    if not terms:
        return True
    labels: dict[str, list[str]] = defaultdict(list)
    for key, value in node.labels:
        labels[key].append(value)
    return any(term and all(_is_met(labels.get(item.key), item) for item in term) for term in terms)


def _is_met(values: Sequence[str] | None, requirement: NodeRequirement) -> bool:
    return any(_meets(value, requirement) for value in values or (None,))


def _meets(value: str | None, requirement: NodeRequirement) -> bool:
    """Return whether the value of a label meets a core/v1 requirement; Gt and Lt compare integers."""
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
            number, bound = _number(value or ""), _number(bounds[0]) if len(bounds) == 1 else None
            if number is None or bound is None:
                return False
            return number > bound if operator == "Gt" else number < bound


def known_labels(node: Node, keys: frozenset[str]) -> frozenset[str]:
    """Return those of some labels of which a node has exactly one value."""
    counts = Counter(key for key, _ in node.labels if key in keys)
    return frozenset(key for key, number in counts.items() if number == 1)


def _number(text: str) -> int | None:
    """Return a 64-bit integer, or None for other text, with which kube-scheduler matches no node."""
    match = _INTEGER.fullmatch(text)
    number = int(match[1] + match[2]) if match else None
    return number if number is not None and -(2**63) <= number < 2**63 else None


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    """Return whether a toleration matches a taint, as defined by core/v1."""
    if toleration.effect not in ("", taint.effect):
        return False
    if toleration.operator == "Exists":
        return toleration.key in ("", taint.key)
    return toleration.key == taint.key and toleration.value == taint.value


def bins(
    nodes: Sequence[Node], variants: Sequence[Variant], pools: Sequence[NodePool] = ()
) -> tuple[tuple[Bin, ...], tuple[int | None, ...]]:
    """Group the nodes by the variants that may use them; replicas without accelerators need no node.

    If some of these variants have a rule on domains, each domain has bins of its own. Returns the bins, and
    the bin of each node pool's nodes, or None for a pool that no variant may use.
    """
    groups: dict[_Kind, list[int]] = defaultdict(list)
    everywhere = [*nodes, *(node_to_come(pool) for pool in pools)]
    eligible, users = _eligible(everywhere, variants, existing=len(nodes))
    keys = [frozenset(rule.topology_key for v in own if (rule := variants[v].rules.spread)) for own in users]
    kinds = [
        (
            group,
            tuple(sorted(label for label in node.labels if label[0] in keys[group])) if keys[group] else (),
        )
        for node, group in zip(everywhere, eligible, strict=True)
    ]
    for index, kind in enumerate(kinds):
        if users[kind[0]]:
            groups[kind] += [index] if index < len(nodes) else []
    in_order = sorted(groups, key=lambda kind: (users[kind[0]], kind[1]))
    order = {kind: position for position, kind in enumerate(in_order)}
    sorted_bins = tuple(
        Bin(
            nodes=tuple(groups[kind]),
            sizes=tuple(sorted({variants[index].accelerators_per_pod for index in users[kind[0]]})),
            variants=users[kind[0]],
        )
        for kind in in_order
    )
    return sorted_bins, tuple(order.get(kind) for kind in kinds[len(nodes) :])


def node_to_come(pool: NodePool) -> Node:
    """Return a node as the pool would add it."""
    return Node(
        name=pool.name,
        accelerator=pool.accelerator,
        accelerators_allocatable=pool.accelerators_per_node,
        labels=pool.labels,
        taints=pool.taints,
    )


def with_addable_nodes(pool: NodePool, nodes: Sequence[Node]) -> NodePool:
    """Return a pool with the nodes that can be added below its maximum size, if that is known.

    A node that starts is not among `nodes` before it has accelerators, so it is still one to come.
    """
    if pool.max_nodes is None:
        return pool
    existing = sum(pool.labels <= node.labels for node in nodes)
    return replace(pool, nodes_addable=max(0, pool.max_nodes - existing))


def _eligible(
    nodes: Sequence[Node], variants: Sequence[Variant], *, existing: int
) -> tuple[list[int], list[tuple[int, ...]]]:
    """Return the group number of each node, and the eligible variants of each group.

    The first `existing` nodes exist, the others are to come, for all variants but those that waited in vain.
    Variants and nodes with equal attributes are compared only once.
    """
    users: dict[tuple[object, ...], list[int]] = defaultdict(list)
    for index, variant in enumerate(variants):
        if variant.accelerators_per_replica:
            key = (
                variant.accelerator,
                variant.node_selector,
                variant.node_affinity,
                variant.tolerations,
                topology_keys(variant),
                variant.stalled_replicas > 0,
            )
            users[key].append(index)
    keys = {key for variant in variants for key, _ in variant.node_selector}
    keys |= {item.key for variant in variants for term in variant.node_affinity for item in term}
    # For these labels only the presence matters here, and there may be as many values as racks.
    needed = frozenset[str]().union(*(topology_keys(variant) for variant in variants)) - keys
    known: dict[tuple[object, ...], int] = {}
    numbers: dict[tuple[int, ...], int] = {}
    result = []
    for position, node in enumerate(nodes):
        exists = position < existing
        labels = frozenset(label for label in node.labels if label[0] in keys)
        present = known_labels(node, needed) if needed else needed
        kind = (exists, node.schedulable, node.accelerator, labels, present, node.taints)
        if kind not in known:
            firsts = ((group, variants[group[0]]) for group in users.values())
            matching = [
                group
                for group, first in firsts
                if admits(node, first) and (exists or not first.stalled_replicas)
            ]
            members = tuple(sorted(index for group in matching for index in group))
            known[kind] = numbers.setdefault(members, len(numbers))
        result.append(known[kind])
    return result, [*numbers]


class Topologies:
    """The topologies to which some variant refers, by the label that names their domains."""

    def __init__(self, nodes: Sequence[Node], to_come: Sequence[Node], variants: Sequence[Variant]) -> None:
        self._nodes = nodes
        self._to_come = to_come
        self._keys = sorted(frozenset[str]().union(*(topology_keys(variant) for variant in variants)))
        self._known: dict[tuple[object, ...], Topology] = {}

    @cached_property
    def _numbers(self) -> list[dict[str, int]]:
        """The number of each domain by label value, per topology."""
        labels = [self._labels(node) for node in (*self._nodes, *self._to_come)] if self._keys else []
        return [
            {value: number for number, value in enumerate(sorted({of[key] for of in labels if key in of}))}
            for key in self._keys
        ]

    def domains(self, node: Node) -> tuple[int, ...]:
        """Return the domain of a node in each topology."""
        labels = self._labels(node) if self._keys else {}
        return tuple(
            numbers.get(labels.get(key, ""), NO_DOMAIN)
            for key, numbers in zip(self._keys, self._numbers, strict=True)
        )

    def _labels(self, node: Node) -> dict[str, str]:
        """Return the labels that name a domain; one with several possible values names none."""
        known = known_labels(node, frozenset(self._keys))
        return {key: value for key, value in node.labels if key in known}

    def of_nodes(self) -> tuple[tuple[int, ...], ...]:
        """Return the domain of each node, per topology."""
        rows = [self.domains(node) for node in self._nodes] if self._keys else []
        return tuple(tuple(row[index] for row in rows) for index, _ in enumerate(self._keys))

    def together(self, variant: Variant) -> int | None:
        """Return the topology in which a replica's pods must be together; None for single pods."""
        asks = variant.together_in and variant.pods_per_replica > 1
        return self._keys.index(variant.together_in) if asks else None

    def spread_terms(self, variant: Variant) -> SpreadTerms | None:
        """Return the rule of a variant's pods on domains in integers, or None."""
        rule = variant.rules.spread
        if rule is None:
            return None
        number = self._keys.index(rule.topology_key)
        key = (number, variant.accelerator, variant.node_selector, variant.node_affinity)
        if key not in self._known:
            self._known[key] = Topology(
                number=number,
                selected=self._selected_domains(self._nodes, number, variant),
                selected_to_come=self._selected_domains(self._to_come, number, variant),
            )
        return rule.terms(self._known[key])

    def _selected_domains(self, nodes: Sequence[Node], topology: int, variant: Variant) -> tuple[int, ...]:
        """Return the domains of the nodes that a variant's pods select."""
        selected = {
            self.domains(node)[topology]
            for node in nodes
            if variant.accelerator in ("", node.accelerator)
            and variant.node_selector <= node.labels
            and meets(node, variant.node_affinity)
        }
        return tuple(sorted(selected - {NO_DOMAIN}))


OWN_LABELS: Final = frozenset({NAME_FIELD, "kubernetes.io/hostname"})
"""Labels whose value is unique to each node."""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeAddition:
    """Hypothetical nodes of one shape."""

    accelerator: str
    accelerators: int
    nodes: int = 1


def new_nodes(snapshot: Snapshot, addition: NodeAddition) -> Iterator[Node]:
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
    selectors = [variant.node_selector for variant in snapshot.variants if variant.accelerator == accelerator]
    return frozenset(dict(label for selector in selectors for label in sorted(selector)).items())
