"""What the free accelerators of a kind of nodes are enough for, before anybody has a node of a kind."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from controller.planning.problem import Solution, freed
from hack.fleets.rivals.rooms import Shelf, Slots

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from hack.fleets.rivals.view import View


@dataclass(frozen=True, kw_only=True, slots=True)
class Promise:
    """Replicas that may find a place; more of a variant will not."""

    replicas: tuple[int, ...]
    free: Sequence[int]
    """Accelerators of each node, once what goes is gone."""

    shares: Sequence[tuple[int, int, int]]
    """(variant, kind, replicas) for which slots are kept, but no node is known yet."""

    placed: Mapping[tuple[int, int], int]
    """(variant, node) -> replicas, where every node is a bin of its own."""


def promised(view: View, allowed: tuple[int, ...], order: Sequence[int]) -> Promise:
    """Return what is promised of the replicas that are allowed, to those earlier in the order first."""
    free = freed(view.problem, allowed)
    slots = {k: Slots(kind, free) for k, kind in enumerate(view.kinds) if kind.sizes}
    shelves = {k: Shelf(kind.nodes, free) for k, kind in enumerate(view.kinds) if not kind.sizes}
    replicas = list(allowed)
    placed = Counter[tuple[int, int]]()
    shares: list[tuple[int, int, int]] = []
    for v in order:
        terms = view.problem.variants[v]
        wanted = allowed[v] - len(terms.bound) if terms.accelerators else 0
        if wanted <= 0:
            continue
        for k in view.usable[v]:
            if k in slots:
                count = slots[k].take(terms.accelerators, wanted)
                shares.append((v, k, count))
            else:
                at = shelves[k].put(terms.accelerators, wanted)
                count = sum(replicas for _, replicas in at)
                placed.update({(v, node): replicas for node, replicas in at})
            wanted -= count
        replicas[v] -= wanted
    return Promise(replicas=tuple(replicas), free=free, shares=shares, placed=placed)


def named(view: View, promise: Promise) -> Solution:
    """Return the plan in which as much of a promise as there is room for has its nodes.

    Slots say that all of it fits when the largest are placed first, whoever is more important.
    """
    variants = view.problem.variants
    shelves = {k: Shelf(view.kinds[k].nodes, promise.free) for k in {k for _, k, _ in promise.shares}}
    placed, replicas = Counter(promise.placed), list(promise.replicas)
    for v, k, count in sorted(
        promise.shares, key=lambda share: (-variants[share[0]].accelerators, variants[share[0]].name)
    ):
        replicas[v] -= count
        for node, found in shelves[k].put(variants[v].accelerators, count):
            placed[v, node] += found
            replicas[v] += found
    placements = tuple((v, node, count) for (v, node), count in sorted(placed.items()))
    return Solution(replicas=tuple(replicas), placements=placements)
