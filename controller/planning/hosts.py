"""Nodes indexed by free accelerators, to find the fullest one with enough room without a scan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush


class Hosts:
    """The nodes of each bin, in heaps by free accelerators; ties are broken by the lowest index."""

    def __init__(self, free: Sequence[int], bins: Mapping[int, Sequence[int]]) -> None:
        self.free = list(free)
        """Free accelerators of each node."""
        self._bin_of = {node: bin_ for bin_, nodes in bins.items() for node in nodes}
        self._heaps: dict[int, dict[int, list[int]]] = {bin_: {} for bin_ in bins}
        for bin_, nodes in bins.items():
            for node in nodes:
                if free[node] > 0:
                    self._heaps[bin_].setdefault(free[node], []).append(node)
            for heap in self._heaps[bin_].values():
                heapify(heap)

    def fullest(self, bins: Iterable[int], accelerators: int) -> int | None:
        """Return the fullest node of some bins with enough free accelerators, or None."""
        candidates = [
            (free, first)
            for bin_ in bins
            for free in [amount for amount in self._heaps[bin_] if amount >= accelerators]
            if (first := self._first(bin_, free)) is not None
        ]
        return min(candidates)[1] if candidates else None

    def take_many(self, bins: Sequence[int], accelerators: int, count: int) -> Iterator[tuple[int, int]]:
        """Take room for `count` units of a size, and yield (node, units) for each node used.

        The fullest node remains the fullest as long as it has room.
        """
        while count and (node := self.fullest(bins, accelerators)) is not None:
            units = min(count, self.free[node] // accelerators)
            self.take_on(node, units * accelerators)
            yield node, units
            count -= units

    def take_on(self, node: int, accelerators: int) -> None:
        """Take accelerators on a node that has them, or return some if negative."""
        free = self.free[node] = self.free[node] - accelerators
        if free > 0 and node in self._bin_of:
            heappush(self._heaps[self._bin_of[node]].setdefault(free, []), node)

    def _first(self, bin_: int, free: int) -> int | None:
        """Return the first node of a bin with exactly this many free accelerators.

        Entries of nodes whose free amount has changed are stale and are removed here. A node may be in a heap
        twice if its amount changed back. Empty heaps are deleted: otherwise each take from a large node would
        leave one.
        """
        heap = self._heaps[bin_][free]
        while heap and self.free[heap[0]] != free:
            heappop(heap)
        if not heap:
            del self._heaps[bin_][free]
        return heap[0] if heap else None
