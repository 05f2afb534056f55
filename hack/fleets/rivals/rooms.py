"""Real nodes: what fits on them, and who gets which."""

from __future__ import annotations

import heapq
from collections import defaultdict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hack.fleets.rivals.kinds import Kind


class Shelf:
    """Nodes by what is free on them: a replica goes to the fullest that has room, the first among equals."""

    def __init__(self, nodes: Sequence[int], free: Sequence[int]) -> None:
        """Put each node where its free accelerators say."""
        self._nodes: dict[int, list[int]] = defaultdict(list)
        for node in sorted(nodes):
            self._nodes[free[node]].append(node)

    def put(self, accelerators: int, replicas: int) -> list[tuple[int, int]]:
        """Place replicas of a size, as many as have room; return (node, replicas)."""
        placed = []
        while replicas:
            free = min((free for free in self._nodes if free >= accelerators), default=None)
            if free is None:
                break
            node = heapq.heappop(self._nodes[free])
            if not self._nodes[free]:
                del self._nodes[free]
            count = min(replicas, free // accelerators)
            heapq.heappush(self._nodes[free - count * accelerators], node)
            placed.append((node, count))
            replicas -= count
        return placed


class Slots:
    """How many replicas of each size still fit on the nodes of one bin (see `Bin`)."""

    def __init__(self, kind: Kind, free: Sequence[int]) -> None:
        """Count the slots of every size."""
        self._left = {size: sum([max(0, free[n]) // size for n in kind.nodes]) for size in kind.sizes}
        self._slots_of: dict[int, list[tuple[int, int]]] = {}

    def take(self, accelerators: int, replicas: int) -> int:
        """Take slots for replicas of a size, as many as are left; return how many."""
        if accelerators not in self._slots_of:
            self._slots_of[accelerators] = [(s, accelerators // s) for s in self._left if s <= accelerators]
        count = replicas
        for size, slots in self._slots_of[accelerators]:
            count = min(count, self._left[size] // slots)
        for size, slots in self._slots_of[accelerators]:
            self._left[size] -= count * slots
        return count
