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


def fit(problem: PlacementProblem, replicas: tuple[int, ...]) -> Placements | None:
    """Return places for replica counts that nobody fitted yet, or None when this simple way finds none.

    Largest first, and among equals those with the fewest nodes to choose from. Where sizes divide each other
    and all variants may use the same nodes this is exact; elsewhere a None proves nothing.
    """
    free = freed(problem, replicas)
    nodes_of = [_nodes(problem, v) for v in range(len(problem.variants))]
    placed: Counter[tuple[int, int]] = Counter()
    order = sorted(
        range(len(replicas)), key=lambda v: (-problem.variants[v].accelerators, len(nodes_of[v]), v)
    )
    for v in order:
        terms = problem.variants[v]
        for _ in range(terms.pods * max(0, replicas[v] - len(terms.bound)) if terms.accelerators else 0):
            node = fullest(nodes_of[v], free, terms.accelerators)
            if node is None:
                return None
            free[node] -= terms.accelerators
            placed[v, node] += 1
    return tuple((v, node, count) for (v, node), count in sorted(placed.items()))


def _nodes(problem: PlacementProblem, variant: int) -> list[int]:
    return [node for bin_ in problem.bins if variant in bin_.variants for node in bin_.nodes]


def fullest(nodes: Sequence[int], free: Sequence[int], accelerators: int) -> int | None:
    """Return the node with the least room that is enough; the first among equals."""
    return min(
        (node for node in nodes if free[node] >= accelerators), key=lambda n: (free[n], n), default=None
    )
