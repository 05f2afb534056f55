"""Name the nodes: largest replicas first, each on the fullest node that still has room for it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from controller.planning.problem import freed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.problem import PlacementProblem

    Placements = tuple[tuple[int, int, int], ...]


def assign(
    problem: PlacementProblem, replicas: tuple[int, ...], shares: Mapping[tuple[int, int], int]
) -> Placements:
    """Return (variant, node, replicas) for a given share of each (bin, variant).

    Exact wherever the shares respect the slots of each bin (see `Bin`). Raises ValueError where they don't.
    """
    free = freed(problem, replicas)
    placed: Counter[tuple[int, int]] = Counter()
    largest_first = sorted(shares, key=lambda key: (-problem.variants[key[1]].accelerators, key))
    for b, v in largest_first:
        for _ in range(shares[b, v]):
            node = fullest(problem.bins[b].nodes, free, problem.variants[v].accelerators)
            if node is None:
                raise ValueError(f"no node has room for {problem.variants[v].name}")
            free[node] -= problem.variants[v].accelerators
            placed[v, node] += 1
    return tuple((v, node, count) for (v, node), count in sorted(placed.items()))


def fullest(nodes: Sequence[int], free: Sequence[int], accelerators: int) -> int | None:
    """Return the node with the least room that is enough; the first among equals."""
    return min(
        (node for node in nodes if free[node] >= accelerators), key=lambda n: (free[n], n), default=None
    )
