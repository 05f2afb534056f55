"""Nodes by how much is free on them: the fullest one that has room is found without looking at the others."""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence


class Hosts:
    """The nodes of each bin, in heaps by free accelerators; among equals the first comes first."""

    def __init__(self, free: Sequence[int], bins: Mapping[int, Sequence[int]]) -> None:
        self._heaps: dict[int, dict[int, list[int]]] = {bin_: {} for bin_ in bins}
        for bin_, nodes in bins.items():
            for node in nodes:
                if free[node] > 0:
                    self._heaps[bin_].setdefault(free[node], []).append(node)
            for heap in self._heaps[bin_].values():
                heapify(heap)

    def take(self, bins: Iterable[int], accelerators: int) -> int | None:
        """Take room on the fullest node of some bins that has enough; None when there is none."""
        candidates = [
            (free, heap[0], bin_)
            for bin_ in bins
            for free, heap in self._heaps[bin_].items()
            if heap and free >= accelerators
        ]
        if not candidates:
            return None
        free, _, bin_ = min(candidates)
        return self.take_of_kind(bin_, free, accelerators)

    def take_of_kind(self, bin_: int, free: int, accelerators: int) -> int:
        """Take room on the first node of a bin that has exactly so many free."""
        node = heappop(self._heaps[bin_][free])
        if free > accelerators:
            heappush(self._heaps[bin_].setdefault(free - accelerators, []), node)
        return node
