"""Node assignment by best-fit decreasing: the largest replicas first, each on the fullest node with room."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.hosts import Hosts
from controller.planning.problem import free_after_removals

if TYPE_CHECKING:
    from collections.abc import Mapping

    from controller.planning.problem import PlacementProblem

    Placements = tuple[tuple[int, int, int], ...]


def assign(
    problem: PlacementProblem, replicas: tuple[int, ...], shares: Mapping[tuple[int, int], int]
) -> Placements:
    """Return (variant, node, replicas) for a given share of each (bin, variant).

    Exact if the shares respect the slots of each bin (see `Bin`). Raises ValueError otherwise.
    """
    hosts = Hosts(
        free_after_removals(problem, replicas), {b: bin_.nodes for b, bin_ in enumerate(problem.bins)}
    )
    placed: Counter[tuple[int, int]] = Counter()
    for b, v in sorted(shares, key=lambda key: (-problem.variants[key[1]].accelerators, key)):
        left = shares[b, v]
        for node, count in hosts.take_many((b,), problem.variants[v].accelerators, left):
            placed[v, node] += count
            left -= count
        if left:
            raise ValueError(f"no node has room for {problem.variants[v].name}")
    return tuple((v, node, count) for (v, node), count in sorted(placed.items()))
