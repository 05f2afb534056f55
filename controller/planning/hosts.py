"""Nodes by how much is free on them: the fullest one that has room is found without looking at the others."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence


class Hosts:
    """The nodes of each bin, in heaps by free accelerators; among equals the first comes first."""

    def __init__(self, free: Sequence[int], bins: Mapping[int, Sequence[int]]) -> None:
        self.free = list(free)
        """What is free on each node now."""
        self._bin_of = {node: bin_ for bin_, nodes in bins.items() for node in nodes}
        self._heaps: dict[int, dict[int, list[int]]] = {bin_: {} for bin_ in bins}
        for bin_, nodes in bins.items():
            for node in nodes:
                if free[node] > 0:
                    self._heaps[bin_].setdefault(free[node], []).append(node)
            for heap in self._heaps[bin_].values():
                heapify(heap)

    def fullest(self, bins: Iterable[int], accelerators: int) -> int | None:
        """Return the fullest node of some bins that has enough; None without one."""
        candidates = [
            (free, first)
            for bin_ in bins
            for free in [amount for amount in self._heaps[bin_] if amount >= accelerators]
            if (first := self._first(bin_, free)) is not None
        ]
        return min(candidates)[1] if candidates else None

    def take(self, bins: Iterable[int], accelerators: int) -> int | None:
        """Take room on that node, and return it."""
        node = self.fullest(bins, accelerators)
        if node is not None:
            self.take_on(node, accelerators)
        return node

    def take_many(self, bins: Sequence[int], accelerators: int, count: int) -> Iterator[tuple[int, int]]:
        """Take room for some of a size, one after the other; yield the nodes, with how many lie on each.

        What was the fullest node stays so as long as it has room.
        """
        while count and (node := self.take(bins, accelerators)) is not None:
            more = min(count - 1, self.free[node] // accelerators)
            if more:
                self.take_on(node, more * accelerators)
            yield node, more + 1
            count -= more + 1

    def take_on(self, node: int, accelerators: int) -> None:
        """Take room on a node that has it, or give some back."""
        free = self.free[node] = self.free[node] - accelerators
        if free > 0 and node in self._bin_of:
            heappush(self._heaps[self._bin_of[node]].setdefault(free, []), node)

    def _first(self, bin_: int, free: int) -> int | None:
        """Return the first node of a bin with so many free.

        A node that has another amount free has left the heap. It may be in it twice, if it came back.
        An empty heap goes: a node of many accelerators would leave one behind with each that it gives.
        """
        heap = self._heaps[bin_][free]
        while heap and self.free[heap[0]] != free:
            heappop(heap)
        if not heap:
            del self._heaps[bin_][free]
        return heap[0] if heap else None
