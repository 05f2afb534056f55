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

    def take(
        self, bins: Iterable[int], accelerators: int, barred: frozenset[int] = frozenset()
    ) -> int | None:
        """Take room on the fullest node of some bins that has enough and is not barred; None without one."""
        candidates = [
            (free, first, bin_)
            for bin_ in bins
            for free, heap in self._heaps[bin_].items()
            if free >= accelerators and (first := _first(heap, barred)) is not None
        ]
        if not candidates:
            return None
        free, node, bin_ = min(candidates)
        if not barred:
            return self.take_of_kind(bin_, free, accelerators)
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

    def take_of_kind(self, bin_: int, free: int, accelerators: int) -> int:
        """Take room on the first node of a bin that has exactly so many free."""
        node = heappop(self._heaps[bin_][free])
        self._put_back(bin_, node, free - accelerators)
        return node

    def take_on(self, node: int, accelerators: int) -> None:
        """Take room on a node that has it."""
        bin_, free = self._bin_of[node], self.free[node]
        heap = self._heaps[bin_][free]
        heap.remove(node)
        heapify(heap)
        self._put_back(bin_, node, free - accelerators)

    def _put_back(self, bin_: int, node: int, free: int) -> None:
        self.free[node] = free
        if free > 0:
            heappush(self._heaps[bin_].setdefault(free, []), node)


def _first(heap: Sequence[int], barred: frozenset[int]) -> int | None:
    """Return the first node that is not barred."""
    if not barred:
        return heap[0] if heap else None
    return min((node for node in heap if node not in barred), default=None)
