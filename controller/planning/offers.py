"""Pods that may be evicted from the nodes of a bin, within disruption budgets.

If more replicas are under a budget than may be evicted, only that many are offered, so any choice among the
offers respects the budget. Replicas on the nodes that are closest to empty are offered first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from controller.planning.cluster import Node
from controller.planning.disruption import BudgetKey, DisruptionLedger, budget_of
from controller.planning.inventory import satisfies
from controller.planning.moves import Kind
from controller.planning.problem import Bin, divide_each_other
from controller.planning.shortage import OTHERS, Ledger
from controller.planning.solved_problem import SolvedProblem

_OTHERS_PRIORITY = 101
"""Pods of other workloads are evicted before replicas of the same price."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Identical replicas on one node that may be evicted."""

    namespace: str
    name: str
    """Name of the variant, or of the pod."""

    is_other: bool
    kind: Kind
    """Its price is 1 per accelerator of a variant, 2 to 4 per accelerator of other pods."""

    priority: int
    """Priority; the largest number is evicted first."""

    replicas: int
    budget: BudgetKey


def offers(
    solved: SolvedProblem, bin_: Bin, after: Ledger, disruptions: DisruptionLedger
) -> list[list[Offer]]:
    """Return the pods that may be evicted from each node of a bin."""
    placed: Counter[tuple[int, int]] = Counter()
    for v, node, count in solved.granted.placements:
        placed[node, v] += count * solved.problem.variants[v].accelerators
    found = [[*_replicas(solved, after, node, placed)] for node in bin_.nodes]
    nodes = [solved.nodes[node] for node in bin_.nodes]
    for row, pods in enumerate(_others(nodes, bin_.sizes)):
        found[row] += pods
    held = [a.accelerators_allocatable - after.free[n] for n, a in zip(bin_.nodes, nodes, strict=True)]
    return _within(found, held, disruptions)


def _replicas(
    solved: SolvedProblem, after: Ledger, node: int, placed: Mapping[tuple[int, int], int]
) -> Iterator[Offer]:
    """Yield the movable replicas that stay on a node; those that are yet to be placed cannot be evicted."""
    for v, held in after.held[node]:
        if not _may_move(solved, v) or held <= placed[node, v]:
            continue
        variant, size = solved.variants[v], solved.problem.variants[v].accelerators
        yield Offer(
            namespace=variant.namespace,
            name=variant.name,
            is_other=False,
            kind=Kind(accelerators=size, price=size),
            priority=variant.priority,
            replicas=(held - placed[node, v]) // size,
            budget=budget_of(variant),
        )


def _may_move(solved: SolvedProblem, v: int) -> bool:
    if v == OTHERS or not solved.problem.variants[v].accelerators:
        return False
    variant = solved.variants[v]
    terms = solved.problem.variants[v]
    forbidden = variant.evictable_replicas == 0 or not (variant.may_be_preempted and variant.may_be_moved)
    # Free accelerators alone do not decide where such a pod could be placed again.
    return not forbidden and not terms.lower and not terms.is_topology_constrained and terms.pods == 1


def _others(nodes: Sequence[Node], sizes: Sequence[int]) -> Iterator[list[Offer]]:
    """Yield for each node the movable pods of other workloads that every one of the nodes admits."""
    chain = list(sizes)
    known: dict[object, bool] = {}
    for node in nodes:
        here = []
        for pod in sorted(node.movable, key=lambda pod: (pod.namespace, pod.name)):
            key = (pod.node_selector, pod.node_affinity, pod.tolerations)
            if key not in known:
                known[key] = all(satisfies(other, *key) for other in nodes)
            if known[key] and pod.evictable != 0 and divide_each_other([*chain, pod.accelerators]):
                chain.append(pod.accelerators)
                price = pod.accelerators * (1 + pod.price_class)
                here.append(
                    Offer(
                        namespace=pod.namespace,
                        name=pod.name,
                        is_other=True,
                        kind=Kind(accelerators=pod.accelerators, price=price),
                        priority=_OTHERS_PRIORITY,
                        replicas=1,
                        budget=budget_of(pod),
                    )
                )
        yield here


def _within(
    found: Sequence[Sequence[Offer]], held: Sequence[int], disruptions: DisruptionLedger
) -> list[list[Offer]]:
    """Return the offers within the budgets, filled first on nodes where the least remains after eviction."""
    taken: Counter[BudgetKey] = Counter()
    kept: list[list[Offer]] = [[] for _ in found]
    stays = [
        there - sum(offer.replicas * offer.kind.accelerators for offer in row)
        for there, row in zip(held, found, strict=True)
    ]
    for row in sorted(range(len(found)), key=lambda row: (stays[row], row)):
        for offer in found[row]:
            left = disruptions.remaining(offer.budget)
            most = offer.replicas if left is None else min(offer.replicas, left - taken[offer.budget])
            if most > 0:
                taken[offer.budget] += most
                kept[row].append(replace(offer, replicas=most))
    return kept
