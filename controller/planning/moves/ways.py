"""The ways to evict from one node that are worth a look, and which nodes have the same ones.

With sizes that divide each other, an eviction of size k takes as many slots of each size up to k as it frees,
wherever it goes: it gains something at larger sizes only. A way is what some evictions gain at the sizes of
which there are too few slots. Of evictions of one size the cheapest come first, and a way is left out where
another one gains as much for no more: no answer is worse without it. Nodes that have the same ways left are
one kind, whatever else lies on them.
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
"""How many ways to evict from one node are looked at: enough for all of an eight-accelerator node's."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Kind:
    """Movable replicas that are alike."""

    accelerators: int
    price: int
    """Of evicting one; positive."""


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Way:
    """What evicting some replicas of a node comes to."""

    price: int
    replicas: int
    gained: tuple[int, ...]
    """Slots of each size that is short, less those that the evicted take again."""

    def is_no_better_than(self, other: Way) -> bool:
        """Tell whether the other one gains as much for no more."""
        return (
            other.price <= self.price
            and other.replicas <= self.replicas
            and all(theirs >= own for own, theirs in zip(self.gained, other.gained, strict=True))
        )


class Choices:
    """The ways of nodes, by what is free on them and what lies there."""

    def __init__(self, kinds: Sequence[Kind], short: Sequence[int]) -> None:
        """Take the kinds that may leave, and the sizes of which slots are short, both ascending."""
        self._kinds = kinds
        self._sizes = sorted({kind.accelerators for kind in kinds})
        self._of_size = [
            [k for k, kind in enumerate(kinds) if kind.accelerators == size] for size in self._sizes
        ]
        self._short = short
        self._useful = cache(self._useful_counts)
        self.is_whole = True
        """Whether all ways were looked at."""

    def ways(self, free: int, movable: Sequence[int]) -> tuple[tuple[Way, tuple[int, ...]], ...]:
        """Return the ways that are worth a look, the cheapest first, each with the replicas per size."""
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
        """Yield (kind, replicas) of so many replicas per size, of each the cheapest first."""
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
        """Return the replicas per size of which none can be spared, with what they gain."""
        few = _few(there)
        self.is_whole &= few == list(there)
        gains = {
            counts: tuple(self._gain(size, free, counts) for size in self._short)
            for counts in product(*(range(count + 1) for count in few))
        }
        # More evictions never gain less: whoever can be spared can be spared one by one.
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
    """Return how many of each size may leave one node: all, unless there are too many ways to choose."""
    counts = list(movable)
    while math.prod(count + 1 for count in counts) > MOST_WAYS:
        counts[counts.index(max(counts))] -= 1
    return counts
