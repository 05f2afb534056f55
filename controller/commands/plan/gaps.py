"""Warnings about information that planning could use but the files lack, and how to supply it."""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from controller.observe.accelerators import PRODUCT, PRODUCT_LABELS
from controller.planning.cluster import Node
from controller.planning.decision import Plan
from controller.planning.inventory import OWN_LABELS, NodeAddition, admits, new_nodes, topology_keys
from controller.planning.load import CapacitySource
from controller.planning.pod_rules import PodRules
from controller.planning.snapshot import Snapshot, Variant
from controller.planning.wording import count, first_of, rate_text
from controller.sizing.records import VariantFacts
from controller.sizing.roofline import ACCURACY

_MOST_NAMED: Final = 5


def information_gaps(snapshot: Snapshot, plan: Plan) -> tuple[str, ...]:
    """Return one message for each piece of missing information."""
    return (
        *_nodes(snapshot),
        *_untyped_nodes(snapshot),
        *_without_accelerators(snapshot),
        *_unlabelled_nodes(snapshot),
        *_demands(plan),
        *_capacities(plan),
    )


def estimated_capacities(snapshot: Snapshot, facts: Mapping[tuple[str, str], VariantFacts]) -> Iterator[str]:
    """Yield a message for each variant whose capacity is only an estimate of the catalog."""
    for variant in snapshot.variants:
        known = facts[variant.key].estimate if variant.key in facts else None
        capacity = variant.capacity
        if known and capacity and capacity.source is CapacitySource.CATALOG:
            name = "/".join(variant.key)
            yield (
                f"the capacity of a replica of {name}, {rate_text(capacity.requests_per_second)} requests/s,"
                f" is estimated for {known.basis}, and {ACCURACY}: measure it with stowplan profile, or use"
                f" --capacity {name}=REQUESTS_PER_SECOND"
            )


def useless_nodes(snapshot: Snapshot, additions: Sequence[NodeAddition]) -> Iterator[str]:
    """Yield a message for each added node shape that no variant's pods can use."""
    for addition in additions:
        node = next(new_nodes(snapshot, addition))
        sizes = [
            variant.accelerators_per_pod
            for variant in snapshot.variants
            if variant.accelerators_per_pod and admits(node, _anywhere(variant))
        ]
        shape = f"--add-node {addition.accelerator}x{addition.accelerators}"
        if not sizes:
            types = ", ".join(sorted({variant.accelerator for variant in snapshot.variants} - {""}))
            yield f"{shape}: no variant can use such a node{f'; the variants use {types}' if types else ''}"
        elif min(sizes) > addition.accelerators:
            yield f"{shape}: no pod fits on such a node, the smallest takes {min(sizes)}"


def _anywhere(variant: Variant) -> Variant:
    """Return a variant without topology constraints on its pods."""
    return replace(variant, rules=PodRules(), together_in="")


def _nodes(snapshot: Snapshot) -> Iterator[str]:
    asks = any(variant.accelerators_per_replica for variant in snapshot.variants)
    if asks and not snapshot.nodes:
        yield (
            "the input contains no node with accelerators: add an export (kubectl get nodes -o yaml), or"
            " use --add-node H100x8:4"
        )


def _untyped_nodes(snapshot: Snapshot) -> Iterator[str]:
    """Yield a message about nodes whose accelerators have no known type."""
    names = [node.name for node in snapshot.nodes if not node.accelerator]
    if names and any(variant.accelerator for variant in snapshot.variants):
        labels = ", ".join(name for name in PRODUCT_LABELS if name != PRODUCT)
        yield (
            f"the type of the accelerators of {count(len(names), 'node')} is unknown, so no variant for a"
            f" type is placed there: {first_of(names, _MOST_NAMED)}; it is read from the"
            f" first of the labels {labels}"
        )


def _without_accelerators(snapshot: Snapshot) -> Iterator[str]:
    """Yield a message about variants for a type of accelerators whose pods request none."""
    names = [
        "/".join(variant.key)
        for variant in snapshot.variants
        if variant.accelerator and not variant.accelerators_per_replica
    ]
    if names:
        yield (
            f"the pods of {count(len(names), 'variant')} request no accelerators, so they take up none of"
            f" their type and are on no node of the plan: {first_of(names, _MOST_NAMED)}; a container"
            " requests them with limits such as nvidia.com/gpu"
        )


def _unlabelled_nodes(snapshot: Snapshot) -> Iterator[str]:
    """Yield messages about nodes that only lack a label by which pods are spread or kept together.

    Equal nodes are checked once, because an export may have thousands of nodes.
    """
    nodes: dict[tuple[object, ...], list[Node]] = defaultdict(list)
    for node in snapshot.nodes:
        shared = frozenset(label for label in node.labels if label[0] not in OWN_LABELS)
        nodes[node.schedulable, node.accelerator, shared, node.taints].append(node)
    for variant in snapshot.variants:
        free = _anywhere(variant)
        for key in sorted(topology_keys(variant) - OWN_LABELS):
            without = [
                item.name
                for group in nodes.values()
                if key not in dict(group[0].labels) and admits(group[0], free)
                for item in group
            ]
            if without:
                yield (
                    f"{'/'.join(variant.key)} spreads its pods or keeps them together by the label {key}, so"
                    f" none of them is placed on {count(len(without), 'node')} without it:"
                    f" {first_of(without, _MOST_NAMED)}; to plan with the label, write a decision with"
                    " --save, add the label to the node in it, and plan with that file"
                )


def _demands(plan: Plan) -> Iterator[str]:
    unknown = {
        (item.namespace, item.model_id) for item in plan.decisions if item.load.requests_per_second is None
    }
    for namespace, model in sorted(unknown):
        name = f"{namespace}/{model}"
        yield (
            f"the load of {name} is unknown, so no running replica stops: use --demand"
            f" {shlex.quote(f'{name}=REQUESTS_PER_SECOND')}"
        )


def _capacities(plan: Plan) -> Iterator[str]:
    for item in plan.decisions:
        if item.capacity is None and item.load.requests_per_second:
            name = f"{item.namespace}/{item.name}"
            yield f"the capacity of a replica of {name} is unknown: use --capacity {name}=REQUESTS_PER_SECOND"
