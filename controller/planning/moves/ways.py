"""Enumerate the non-dominated ways to evict pods from one node.

If sizes divide each other, an evicted pod of size k uses as many slots of each size up to k as it frees,
wherever it goes, so only larger sizes can gain slots. A way is defined by the slots that its evictions gain
at the sizes with too few slots. Among evictions of one size the cheapest come first, and a way is dropped if
another gains as much at no higher cost: this excludes no optimum. Nodes with the same remaining ways form one
group, whatever else is on them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, product
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

MOST_WAYS = 2000
"""The maximum number of ways considered per node: sufficient for every node with eight accelerators."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """A kind of identical movable replicas."""

    accelerators: int
    price: int
    """Price of evicting one; positive."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Way:
    """The effect of evicting some replicas from a node."""

    price: int
    replicas: int
    gained: tuple[int, ...]
    """Slots gained of each short size, net of those that the evicted pods use again."""

    def is_no_better_than(self, other: Way) -> bool:
        """Return whether the other way gains at least as much at no higher cost."""
        return (
            other.price <= self.price
            and other.replicas <= self.replicas
            and all(theirs >= own for own, theirs in zip(self.gained, other.gained, strict=True))
        )


class Choices:
    """The ways of nodes, by their free accelerators and movable replicas."""

    def __init__(self, kinds: Sequence[Kind], short: Sequence[int]) -> None:
        """Take the movable kinds and the sizes that are short of slots, both ascending."""
        self._kinds = kinds
        self._sizes = sorted({kind.accelerators for kind in kinds})
        self._of_size = [
            [k for k, kind in enumerate(kinds) if kind.accelerators == size] for size in self._sizes
        ]
        self._short = short
        self._useful = cache(self._useful_counts)
        self.is_whole = True
        """Whether all ways were considered."""

    def ways(self, free: int, movable: Sequence[int]) -> tuple[tuple[Way, tuple[int, ...]], ...]:
        """Return the non-dominated ways, the cheapest first, each with its replicas per size."""
        prices = [[*accumulate(self._prices(size, movable), initial=0)] for size in self._of_size]
        found: dict[Way, tuple[int, ...]] = {}
        for counts, gained in self._useful(free, tuple(len(known) - 1 for known in prices)):
            price = sum(known[count] for known, count in zip(prices, counts, strict=True))
            found.setdefault(Way(price=price, replicas=sum(counts), gained=gained), counts)
        kept: list[Way] = []
        for way in sorted(found):
            if not any(way.is_no_better_than(other) for other in kept):
                kept.append(way)
        return tuple((way, found[way]) for way in kept)

    def evicted(self, counts: Sequence[int], movable: Sequence[int]) -> Iterator[tuple[int, int]]:
        """Yield (kind, replicas) for these counts per size, the cheapest kinds of a size first."""
        for kinds, count in zip(self._of_size, counts, strict=True):
            left = count
            for k in kinds:
                leaving = min(left, movable[k])
                left -= leaving
                if leaving:
                    yield k, leaving

    def _prices(self, kinds: Sequence[int], movable: Sequence[int]) -> Iterator[int]:
        for k in kinds:
            yield from [self._kinds[k].price] * movable[k]

    def _useful_counts(
        self, free: int, there: tuple[int, ...]
    ) -> tuple[tuple[tuple[int, ...], tuple[int, ...]], ...]:
        """Return the minimal replica counts per size, each with the slots that they gain."""
        few = _few(there)
        self.is_whole &= few == list(there)
        gains = {
            counts: tuple(self._gain(size, free, counts) for size in self._short)
            for counts in product(*(range(count + 1) for count in few))
        }
        # Gains are monotone in evictions, so it suffices to check counts with one replica less.
        return tuple(
            (counts, gained)
            for counts, gained in gains.items()
            if any(gained)
            and all(
                gains[*counts[:at], count - 1, *counts[at + 1 :]] != gained
                for at, count in enumerate(counts)
                if count
            )
        )

    def _gain(self, size: int, free: int, counts: Sequence[int]) -> int:
        smaller = sum(n * k for n, k in zip(counts, self._sizes, strict=True) if k < size)
        return (free + smaller) // size - free // size


def _few(movable: Sequence[int]) -> list[int]:
    """Return how many replicas of each size are considered: all, unless there are too many combinations."""
    counts = list(movable)
    while math.prod(count + 1 for count in counts) > MOST_WAYS:
        counts[counts.index(max(counts))] -= 1
    return counts
