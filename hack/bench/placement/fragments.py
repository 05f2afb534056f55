"""Clusters fragmented by churn: pods come and go, and each is bound to a node by the scheduler's strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from random import Random
from typing import Final

import numpy as np
from numpy.typing import NDArray

from controller.planning.moves import MovableKind

PER_NODE: Final = 8
SIZES: Final = (1, 2, 4, 8)
_SHARES: Final = (0.45, 0.25, 0.2, 0.1)
_TURNOVER: Final = 2
"""How often the accelerators in use are replaced by churn before the cluster is measured."""

CLASSES: Final = (1, 3, 8)
"""Eviction prices of the classes of pods."""


Pod = tuple[int, int, int]
"""(node, accelerators, eviction price)."""


class ScoringStrategy(StrEnum):
    """How a scheduler chooses a node for a pod, among the nodes with enough free accelerators."""

    LEAST = "least-allocated"
    RANDOM = "random"
    MOST = "most-allocated"


@dataclass(frozen=True, kw_only=True, slots=True)
class Fragments:
    """The free accelerators (nodes,) and the movable replicas (nodes, kinds) of each node."""

    free: NDArray[np.int64]
    movable: NDArray[np.int64]
    """Movable replicas of each kind on each node."""

    kinds: tuple[MovableKind, ...]

    @property
    def nodes_to_free(self) -> int:
        """The number of whole nodes to make free: half of the free accelerators, at least one node."""
        return max(1, int(self.free.sum()) // (2 * PER_NODE))

    @property
    def whole(self) -> int:
        """The number of nodes that are already completely free."""
        return int((self.free == PER_NODE).sum())


class _Cluster:
    """Nodes indexed by free accelerators, and their pods."""

    def __init__(self, nodes: int, strategy: ScoringStrategy, random: Random) -> None:
        self.free = [PER_NODE] * nodes
        self.pods: list[Pod] = []
        self.used = 0
        self._nodes: list[list[int]] = [[] for _ in range(PER_NODE)] + [[*range(nodes)]]
        self._at = [*range(nodes)]
        self._strategy, self._random = strategy, random

    def fill(self, most: int) -> None:
        """Add pods until `most` accelerators are in use; the size of a pod that does not fit is halved."""
        while self.used < most:
            (size,) = self._random.choices(SIZES, _SHARES)
            while self.used + size > most or (node := self._choose(size)) is None:
                size //= 2
            self._give(node, -size)
            self.pods.append((node, size, self._random.choice(CLASSES)))

    def remove_one(self) -> int:
        """Remove a random pod, and return its size."""
        index = self._random.randrange(len(self.pods))
        self.pods[index], self.pods[-1] = self.pods[-1], self.pods[index]
        node, size, _ = self.pods.pop()
        self._give(node, size)
        return size

    def _choose(self, size: int) -> int | None:
        """Return a node with enough free accelerators, chosen by the strategy; None if there is none."""
        levels = [free for free in range(size, PER_NODE + 1) if self._nodes[free]]
        if not levels:
            return None
        if self._strategy is ScoringStrategy.RANDOM:
            (level,) = self._random.choices(levels, [len(self._nodes[free]) for free in levels])
        else:
            level = levels[-1] if self._strategy is ScoringStrategy.LEAST else levels[0]
        return self._random.choice(self._nodes[level])

    def _give(self, node: int, accelerators: int) -> None:
        """Release accelerators on a node, or allocate them if the number is negative."""
        group, at = self._nodes[self.free[node]], self._at[node]
        group[at] = group[-1]
        self._at[group[at]] = at
        group.pop()
        self.free[node] += accelerators
        self.used -= accelerators
        self._at[node] = len(self._nodes[self.free[node]])
        self._nodes[self.free[node]].append(node)


def fragments(*, nodes: int, used_percent: int, strategy: ScoringStrategy, has_classes: bool) -> Fragments:
    """Return a cluster after churn, with a percentage in use; pods of a whole node are not movable.

    With classes, evictions have the prices of `CLASSES`, otherwise all cost 1.
    """
    random = Random(f"{nodes}/{used_percent}/{strategy}/0")  # noqa: S311 (not used for security)
    cluster, most = _Cluster(nodes, strategy, random), nodes * PER_NODE * used_percent // 100
    cluster.fill(most)
    left = _TURNOVER * most
    while left > 0:
        left -= cluster.remove_one()
        cluster.fill(most)
    prices = CLASSES if has_classes else (1,)
    kinds = {(size, price): i for i, (size, price) in enumerate((s, p) for s in SIZES[:-1] for p in prices)}
    return Fragments(
        free=np.array(cluster.free, dtype=np.int64),
        movable=_movable(cluster.pods, kinds, nodes=nodes, has_classes=has_classes),
        kinds=tuple(MovableKind(accelerators=size, price=price) for size, price in kinds),
    )


def _movable(
    pods: Sequence[Pod], kinds: Mapping[tuple[int, int], int], *, nodes: int, has_classes: bool
) -> NDArray[np.int64]:
    counts = np.zeros((nodes, len(kinds)), dtype=np.int64)
    for node, size, price in pods:
        if size < PER_NODE:
            counts[node, kinds[size, price if has_classes else 1]] += 1
    return counts
