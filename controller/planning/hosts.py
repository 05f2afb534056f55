"""Nodes in the order of their free accelerators, to find the fullest one with enough room without a scan."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Mapping, Sequence
from heapq import merge


class Hosts:
    """The nodes of each bin by free accelerators; ties are broken by the lowest index."""

    def __init__(self, free: Sequence[int], bins: Mapping[int, Sequence[int]]) -> None:
        self.free = list(free)
        """Free accelerators of each node."""
        self._in_order = {bin_: sorted((free[node], node) for node in nodes) for bin_, nodes in bins.items()}
        self.bin_of = {node: bin_ for bin_, nodes in bins.items() for node in nodes}
        """The bin of each node that is in one."""

    def fullest(self, bins: Sequence[int], accelerators: int) -> int | None:
        """Return the fullest node of some bins with enough free accelerators, or None."""
        candidates = []
        for bin_ in bins:
            own = self._in_order[bin_]
            candidates += own[(at := bisect_left(own, (accelerators, 0))) : at + 1]
        return min(candidates)[1] if candidates else None

    def fullest_first(self, bins: Sequence[int], accelerators: int) -> Iterator[int]:
        """Yield the nodes of some bins with enough free accelerators; none may be taken meanwhile."""
        tails = []
        for bin_ in bins:
            own = self._in_order[bin_]
            tails.append(map(own.__getitem__, range(bisect_left(own, (accelerators, 0)), len(own))))
        for _, node in merge(*tails):
            yield node

    def take_many(
        self, bins: Sequence[int], accelerators: int, count: int, allowed: Callable[[int], int] | None = None
    ) -> list[tuple[int, int]]:
        """Take room for `count` units of a size, and return (node, units) for each node used.

        `allowed` returns how many units a node may get at most. The fullest node remains the fullest as long
        as it has room.
        """
        chosen: list[tuple[int, int]] = []
        for node in self.fullest_first(bins, accelerators) if count else ():
            units = min(count, self.free[node] // accelerators, allowed(node) if allowed else count)
            if units:
                chosen.append((node, units))
                count -= units
            if not count:
                break
        for node, units in chosen:
            self.take_on(node, units * accelerators)
        return chosen

    def take_on(self, node: int, accelerators: int) -> None:
        """Take accelerators on a node that has them, or return some if negative."""
        before, after = self.free[node], self.free[node] - accelerators
        self.free[node] = after
        if node in self.bin_of:
            own = self._in_order[self.bin_of[node]]
            own.pop(bisect_left(own, (before, node)))
            insort(own, (after, node))
