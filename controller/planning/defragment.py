"""Find the evictions that defragment free accelerators for models that are short of capacity.

Only replicas of models with fresh demand that may be preempted are moved, and pods of other workloads that
allow it; only among nodes of one bin, and never more than disruption budgets allow. If more replicas are
under a budget than may be evicted, only that many are offered, so any choice among the offers respects the
budget. Replicas on the nodes that are closest to empty are offered first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from controller.planning.cluster import Node
from controller.planning.cpsat import Effort
from controller.planning.decision import Move
from controller.planning.engine.assign import Headroom
from controller.planning.engine.shared import Integers
from controller.planning.inventory import satisfies
from controller.planning.moves import MovableKind, fewest_evictions
from controller.planning.preparing import BudgetKey, DisruptionLedger, budget_of
from controller.planning.problem import Bin, divide_each_other
from controller.planning.solved_problem import OTHERS, SolvedProblem

UNLIMITED = 10**6
"""The value that stands for an unlimited number of moves."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Defragmentation:
    """The moves in one bin, and how many replicas of the short models fit as a result."""

    moves: tuple[Move, ...]
    replicas: Mapping[int, int]
    """Additional replicas, by variant."""

    @property
    def move_count(self) -> int:
        """The number of replicas that are moved."""
        return sum(move.replicas for move in self.moves)


def defragmentations(solved: SolvedProblem, *, most: int | None, effort: Effort) -> Iterator[Defragmentation]:
    """Yield the useful moves of each bin with divisible sizes, at most `most` in all; None for no limit."""
    disruptions = DisruptionLedger(solved.snapshot)
    # Ready replicas that the plan stops anyway use the budgets first.
    disruptions.stop(zip(solved.variants, solved.granted.replicas, strict=True))
    left = UNLIMITED if most is None else most
    missing_anywhere = _missing_replicas(solved)
    for bin_ in solved.problem.bins:
        missing = {v: count for v, count in missing_anywhere.items() if v in bin_.variants}
        if not missing or not bin_.is_divisible or left <= 0:
            continue
        offered = offers(solved, bin_, disruptions)
        free = [solved.free[node] for node in bin_.nodes]
        pods_by_size = Counter[int]()
        for v, count in missing.items():
            pods_by_size[solved.problem.variants[v].accelerators] += count
        kinds = sorted({offer.kind for there in offered for offer in there})
        evicted = fewest_evictions(
            np.array(free, dtype=np.int64),
            _counts(offered, kinds),
            kinds,
            pods_by_size,
            most=left,
            effort=effort,
        )
        granted = _grants(solved, missing, evicted.placed)
        chosen = [*_evictions(offered, kinds, evicted.evicted)]
        if chosen:
            for _, offer, count in chosen:
                disruptions.evict(offer.budget, count)
            names = tuple(solved.variants[v].key for v, more in granted.items() if more)
            where = [solved.nodes[node].name for node in bin_.nodes]
            moves = tuple(
                Move(
                    namespace=offer.namespace,
                    name=offer.name,
                    node=where[row],
                    replicas=count,
                    is_other=offer.is_other,
                    benefits=names,
                )
                for row, offer, count in chosen
            )
            left -= sum(count for *_, count in chosen)
            yield Defragmentation(moves=moves, replicas=granted)


def _missing_replicas(solved: SolvedProblem) -> Mapping[int, int]:
    """Return the replicas of short models that are granted with unlimited nodes but not now.

    Replicas that a quota, a budget or a ceiling forbids anyway do not justify a move.
    """
    replicas = solved.granted.replicas
    headroom, missing = Headroom(solved.problem, replicas), {}
    for model, demand in enumerate(solved.demands):
        if not demand.signal.decides:
            continue
        if not solved.shortage_per_mille(model, replicas):
            continue
        for v in solved.variants_of(model):
            most = headroom.most(v, solved.unconstrained[v] - replicas[v])
            terms = solved.problem.variants[v]
            # Slots alone must decide whether a replica fits: a gang or a rule depends on more.
            if terms.accelerators and terms.pods == 1 and not terms.is_topology_constrained and most > 0:
                missing[v] = most
                headroom.take(v, most)
    return missing


def _counts(offered: Sequence[Sequence[Offer]], kinds: Sequence[MovableKind]) -> Integers:
    """Return how many replicas of each kind can be evicted from each node, as an array (node, kind)."""
    column = {kind: index for index, kind in enumerate(kinds)}
    counts = np.zeros((len(offered), len(kinds)), dtype=np.int64)
    for row, there in enumerate(offered):
        for offer in there:
            counts[row, column[offer.kind]] += offer.replicas
    return counts


def _evictions(
    offered: Sequence[Sequence[Offer]], kinds: Sequence[MovableKind], evicted: Sequence[tuple[int, int, int]]
) -> Iterator[tuple[int, Offer, int]]:
    """Yield (row, offer, replicas): which replicas leave which node, lowest priority first."""
    for row, kind, count in evicted:
        left = count
        alike = [offer for offer in offered[row] if offer.kind == kinds[kind]]
        for offer in sorted(alike, key=lambda offer: (-offer.priority, offer.namespace, offer.name)):
            leaving = min(left, offer.replicas)
            if leaving:
                left -= leaving
                yield row, offer, leaving


def _grants(
    solved: SolvedProblem, missing: Mapping[int, int], placed: Mapping[int, int]
) -> Mapping[int, int]:
    """Return the replicas of each variant that use the freed room, allotted by priority."""
    left, granted = dict(placed), {}
    for v in sorted(missing, key=lambda v: (solved.variants[v].priority, v)):
        size = solved.problem.variants[v].accelerators
        granted[v] = min(missing[v], left[size])
        left[size] -= granted[v]
    return granted


_OTHERS_PRIORITY = 101
"""Pods of other workloads are evicted before replicas of the same price."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """Identical replicas on one node that may be evicted."""

    namespace: str
    name: str
    """Name of the variant, or of the pod."""

    is_other: bool
    kind: MovableKind
    """Its price is 1 per accelerator of a variant, 2 to 4 per accelerator of other pods."""

    priority: int
    """Priority; the largest number is evicted first."""

    replicas: int
    budget: BudgetKey


def offers(solved: SolvedProblem, bin_: Bin, disruptions: DisruptionLedger) -> list[list[Offer]]:
    """Return the pods that may be evicted from each node of a bin."""
    placed: Counter[tuple[int, int]] = Counter()
    for v, node, count in solved.granted.placements:
        placed[node, v] += count * solved.problem.variants[v].accelerators
    by_node = [[*_replicas(solved, node, placed)] for node in bin_.nodes]
    nodes = [solved.nodes[node] for node in bin_.nodes]
    for row, pods in enumerate(_others(nodes, bin_.sizes)):
        by_node[row] += pods
    held = [a.accelerators_allocatable - solved.free[n] for n, a in zip(bin_.nodes, nodes, strict=True)]
    return _within(by_node, held, disruptions)


def _replicas(solved: SolvedProblem, node: int, placed: Mapping[tuple[int, int], int]) -> Iterator[Offer]:
    """Yield the movable replicas that stay on a node; those that are yet to be placed cannot be evicted."""
    for v, held in solved.holders[node].items():
        if not _may_move(solved, v) or held <= placed[node, v]:
            continue
        variant, size = solved.variants[v], solved.problem.variants[v].accelerators
        yield Offer(
            namespace=variant.namespace,
            name=variant.name,
            is_other=False,
            kind=MovableKind(accelerators=size, price=size),
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
    usability: dict[object, bool] = {}
    for node in nodes:
        here = []
        for pod in sorted(node.movable, key=lambda pod: (pod.namespace, pod.name)):
            key = (pod.node_selector, pod.node_affinity, pod.tolerations)
            if key not in usability:
                usability[key] = all(satisfies(other, *key) for other in nodes)
            # With a size outside the chain, slots would not tell what fits, so such a pod stays.
            if usability[key] and pod.evictable != 0 and divide_each_other([*chain, pod.accelerators]):
                chain.append(pod.accelerators)
                price = pod.accelerators * (1 + pod.price_class)
                here.append(
                    Offer(
                        namespace=pod.namespace,
                        name=pod.name,
                        is_other=True,
                        kind=MovableKind(accelerators=pod.accelerators, price=price),
                        priority=_OTHERS_PRIORITY,
                        replicas=1,
                        budget=budget_of(pod),
                    )
                )
        yield here


def _within(
    by_node: Sequence[Sequence[Offer]], held: Sequence[int], disruptions: DisruptionLedger
) -> list[list[Offer]]:
    """Return the offers within the budgets, filled first on nodes where the least remains after eviction."""
    evicted: Counter[BudgetKey] = Counter()
    within: list[list[Offer]] = [[] for _ in by_node]
    stays = [
        there - sum(offer.replicas * offer.kind.accelerators for offer in row)
        for there, row in zip(held, by_node, strict=True)
    ]
    for row in sorted(range(len(by_node)), key=lambda row: (stays[row], row)):
        for offer in by_node[row]:
            left = disruptions.remaining(offer.budget)
            most = offer.replicas if left is None else min(offer.replicas, left - evicted[offer.budget])
            if most > 0:
                evicted[offer.budget] += most
                within[row].append(replace(offer, replicas=most))
    return within
