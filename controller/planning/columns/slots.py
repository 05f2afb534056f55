"""Rows of slots: how much of each size fits the nodes of each bin, and the blocks that they are in.

A slot of size s is room for s accelerators on one node. Pods that have to share a block of nodes (a rack, a
zone) take slots of blocks: so many slots of their size on nodes of one block make one of them. Replicas are
placed by their accelerators in all, the largest first, among equals those on the fewest nodes. If whatever
is placed earlier takes a whole number of each later one's slots, it takes exactly that many wherever it goes,
and everything fits when no row runs out. Elsewhere the rows are necessary, and sufficient for sizes and
numbers of pods that are rounded up.
"""

from __future__ import annotations

from functools import cached_property, partial
from itertools import combinations, pairwise
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.classes import NO_VARIANT
from controller.planning.problem import NO_DOMAIN

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from controller.planning.columns.arrays import Booleans, Integers
    from controller.planning.columns.classes import PlaceClass
    from controller.planning.problem import PlacementProblem

MOST_PATTERNS = 2000
"""Of one number of free accelerators: where there might be more, sizes are rounded up to powers of two."""

MOST_NODE_PLACES = 600
"""Up to how many pairs of a class and a node each pair is a number of its own, where slots do not say all."""


class SlotRows:
    """The rows of all bins, in order."""

    def __init__(self, problem: PlacementProblem, classes: Sequence[PlaceClass]) -> None:
        self._problem = problem
        self._classes = classes
        self._chains = [_chain(bin_.sizes) for bin_ in problem.bins]
        self._gangs = self._gangs_of_bins()
        exact = [self._is_exact(index) for index, _ in enumerate(problem.bins)]
        self.is_exact: Booleans = np.array(exact, dtype=np.bool_)
        self._rounded = [
            () if is_exact else _chain(tuple(sorted({pods for _, pods in gangs})))
            for is_exact, gangs in zip(exact, self._gangs, strict=True)
        ]
        self._keys = [
            (index, *kind)
            for index, bin_ in enumerate(problem.bins)
            for kind in self._kinds(index, bin_.sizes)
        ]
        self.bin, self.size, self.pods = np.array(self._keys, dtype=np.int64).reshape(-1, 3).T

    @cached_property
    def fits_by_slots(self) -> Booleans:
        """(bins,): whether slots are to decide what fits."""
        preferred = [bool(gangs) or self._has_many_patterns(index) for index, gangs in enumerate(self._gangs)]
        by_slots: Booleans = (self.is_exact | np.array(preferred, dtype=np.bool_)) & ~self.fits_by_nodes
        return by_slots

    @cached_property
    def fits_by_nodes(self) -> Booleans:
        """(bins,): whether each node has rows of its own: few, on which slots would not say all."""
        growing = {growth.bin for growth in self._problem.growth}
        return np.array(
            [
                ((bool(self._gangs[index]) and not self.is_exact[index]) or bool(self.is_apart[index]))
                and len(bin_.nodes) * sum(index in kind.bins for kind in self._classes) <= MOST_NODE_PLACES
                and index not in growing
                for index, bin_ in enumerate(self._problem.bins)
            ],
            dtype=np.bool_,
        )

    @cached_property
    def is_apart(self) -> Booleans:
        """(bins,): whether few pods of some variant may share a node there."""
        apart = {bin_ for kind in self._classes if kind.alone != NO_VARIANT for bin_ in kind.bins}
        return np.array([index in apart for index, _ in enumerate(self._problem.bins)], dtype=np.bool_)

    def node_block(self, node_bin: Integers) -> Integers:
        """Return the block of each node, (nodes,): domains of all topologies that pods of its bin share."""
        block = np.full(len(node_bin), NO_DOMAIN, dtype=np.int64)
        for index, bin_ in enumerate(self._problem.bins):
            topologies = self._topologies(index)
            if topologies and bin_.nodes:
                nodes = list(bin_.nodes)
                domains = np.array([self._problem.topologies[t] for t in topologies])[:, nodes]
                block[nodes] = np.unique(domains, axis=1, return_inverse=True)[1].ravel()
        return block

    def slots(self, node_bin: Integers, node_block: Integers) -> Callable[[Integers], Integers]:
        """Return what counts the slots of each row, given what is free on each node."""
        return partial(
            count_slots,
            node_bin=node_bin,
            node_block=node_block,
            row_bin=self.bin,
            row_size=self.size,
            row_pods=self.pods,
        )

    def uses(self, allowed: Booleans) -> Integers:
        """Return how many slots one of a class takes at least, (classes, bins, rows)."""
        sizes = np.array([kind.size for kind in self._classes], dtype=np.int64)
        pods = np.array([kind.pods for kind in self._classes], dtype=np.int64)
        taken = pods[:, None] * (sizes[:, None] // np.maximum(self.size, 1)[None, :])
        per_row = taken // np.maximum(self.pods, 1)[None, :]
        here = self.bin[None, :] == np.arange(allowed.shape[1])[:, None]
        uses: Integers = per_row[:, None, :] * here[None, :, :] * allowed[:, :, None]
        # Blocks that more than one topology makes are smaller than some replicas need.
        mixed = [len(self._topologies(index)) > 1 for index, _ in enumerate(self._gangs)]
        if any(mixed):
            uses[:, :, np.array(mixed)[self.bin] & (self.pods > 1)] = 0
        return uses

    def safe_uses(self, allowed: Booleans) -> Integers:
        """Return how many slots are enough for one of a class, wherever the others are; the same shape."""
        uses = self.uses(allowed)
        for group, bin_ in np.argwhere(allowed & ~self.is_exact[None, :]).tolist():
            uses[group, bin_] = self._safe(self._classes[group], bin_)
        return uses

    def _safe(self, kind: PlaceClass, bin_: int) -> Integers:
        """Return what is enough in a bin where sizes and numbers of pods that go together are rounded."""
        chain, uses = self._chains[bin_], np.zeros(len(self._keys), dtype=np.int64)
        size = chain[-1] if kind.pods > 1 else min(size for size in chain if size >= kind.size)
        together = min(pods for pods in (1, *self._rounded[bin_]) if pods >= kind.pods)
        for row in np.flatnonzero(self.bin == bin_).tolist():
            _, slot, pods = self._keys[row]
            if pods == 1 and slot in chain:
                uses[row] = together * (size // slot)
            elif pods in self._rounded[bin_] and slot == chain[-1]:
                uses[row] = together // pods
        return uses

    def _kinds(self, bin_: int, sizes: tuple[int, ...]) -> Iterator[tuple[int, int]]:
        """Yield the (size, pods) of a bin's rows."""
        for size in sorted({*self._chains[bin_], *sizes}):
            yield size, 1
        rounded = ((self._chains[bin_][-1], pods) for pods in self._rounded[bin_] if pods > 1)
        yield from sorted({*self._gangs[bin_], *rounded})

    def _gangs_of_bins(self) -> list[tuple[tuple[int, int], ...]]:
        """Return for each bin the (size, pods) of what goes together there."""
        found: list[set[tuple[int, int]]] = [set() for _ in self._problem.bins]
        for kind in self._classes:
            for bin_ in kind.bins if kind.pods > 1 else ():
                found[bin_].add((kind.size, kind.pods))
        return [tuple(sorted(own)) for own in found]

    def _topologies(self, bin_: int) -> tuple[int, ...]:
        kinds = self._problem.bins[bin_].variants if self._gangs[bin_] else ()
        found = {self._problem.variants[v].together for v in kinds}
        return tuple(sorted(topology for topology in found if topology is not None))

    def _is_exact(self, bin_: int) -> bool:
        """Tell whether each kind takes a whole number of the slots of every kind that is placed later."""
        if len(self._topologies(bin_)) > 1:
            return False
        kinds = [*((size, 1) for size in self._problem.bins[bin_].sizes), *self._gangs[bin_]]
        kinds.sort(key=lambda kind: (kind[0] * kind[1], kind[0]))
        return all(
            large % small == 0 and many * (large // small) % few == 0
            for (small, few), (large, many) in combinations(kinds, 2)
        )

    def _has_many_patterns(self, bin_: int) -> bool:
        """Tell whether packing some node of the bin has more ways than are worth counting out."""
        sizes = self._problem.bins[bin_].sizes
        if self._chains[bin_] == sizes or not sizes:
            return False
        free = [self._problem.free[node] for node in self._problem.bins[bin_].nodes]
        free += [growth.accelerators for growth in self._problem.growth if growth.bin == bin_]
        most = max(free, default=0)
        ways = 1.0
        for turn, size in enumerate(sizes[1:], start=1):
            ways *= (most / size + turn) / turn
        return ways > MOST_PATTERNS


def count_slots(
    free: Integers,
    *,
    node_bin: Integers,
    node_block: Integers,
    row_bin: Integers,
    row_size: Integers,
    row_pods: Integers,
) -> Integers:
    """Return how many slots of each row the nodes have, given what is free on them."""
    counts = []
    for bin_, size, pods in zip(row_bin.tolist(), row_size.tolist(), row_pods.tolist(), strict=True):
        here = node_bin == bin_
        per_node = np.maximum(free[here], 0) // size
        if pods == 1:
            counts.append(int(per_node.sum()))
        else:
            # What is yet to be added is in no block.
            known = node_block[here] >= 0
            per_block = np.bincount(node_block[here][known], weights=per_node[known], minlength=1)
            counts.append(int((per_block.astype(np.int64) // pods).sum()))
    return np.array(counts, dtype=np.int64)


def _chain(sizes: tuple[int, ...]) -> tuple[int, ...]:
    """Return sizes if each divides the next, else powers of two up to the largest, rounded up."""
    if all(large % small == 0 for small, large in pairwise(sizes)):
        return sizes
    return tuple(2**power for power in range((sizes[-1] - 1).bit_length() + 1))
