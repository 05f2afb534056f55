"""Nodes of a kind, and how many accelerators they have."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.problem import PlacementProblem


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Nodes that the same variants may use, in one bin or in many."""

    nodes: tuple[int, ...]
    sizes: tuple[int, ...]
    """Of slots that tell exactly what fits, smallest first; empty where every node is a bin of its own."""

    variants: tuple[int, ...]


def kinds(problem: PlacementProblem) -> list[Kind]:
    """Return the kinds of nodes, in the order of their first bins."""
    alike: dict[tuple[int, ...], list[int]] = defaultdict(list)
    # Bins of one kind mostly share one tuple; to hash thousands of long ones would take forever.
    group_of: dict[int, list[int]] = {}
    for b, bin_ in enumerate(problem.bins):
        if id(bin_.variants) not in group_of:
            group_of[id(bin_.variants)] = alike[bin_.variants]
        group_of[id(bin_.variants)].append(b)
    return [
        Kind(
            nodes=tuple(node for b in group for node in problem.bins[b].nodes),
            sizes=problem.bins[group[0]].sizes if len(group) == 1 else (),
            variants=problem.bins[group[0]].variants,
        )
        for group in alike.values()
    ]


def kinds_of(problem: PlacementProblem, known: Sequence[Kind]) -> list[tuple[int, ...]]:
    """Return for each variant the kinds of nodes that it may use."""
    usable: list[tuple[int, ...]] = [()] * len(problem.variants)
    for k, kind in enumerate(known):
        alone = (k,)
        for v in kind.variants:
            usable[v] = usable[v] + alone if usable[v] else alone
    return usable


def rooms_of(problem: PlacementProblem, known: Sequence[Kind]) -> tuple[int, ...]:
    """Return the accelerators of each kind that are free or in use by the variants of the problem."""
    room = list(problem.free)
    for terms in problem.variants:
        for places in terms.bound:
            for node in places:
                room[node] += terms.accelerators
    return tuple(max(0, sum([room[node] for node in kind.nodes])) for kind in known)
