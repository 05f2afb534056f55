"""The rows that models share: slots on nodes, quotas and budgets, and nodes that can be added.

An item type is what one unit of a variant requires of nodes: accelerators per pod, pods that are placed
together in one block of nodes, and the bins that it may use. A slot of size s is room for s accelerators on
one node; a pod of k >= s accelerators takes floor(k / s) of them on any node. Slots of blocks apply to gangs:
q slots of one size in one block are one gang slot. The rows are always necessary, and sufficient if every
item takes a whole number of the slots of each smaller kind.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from controller.planning.problem import (
    NO_DOMAIN,
    LimitRow,
    PlacementProblem,
    RowName,
    VariantTerms,
    free_after_removals,
)

Integers = NDArray[np.int64]
"""Integers, or indices."""

Floats = NDArray[np.float64]
"""Prices, and sums that include them."""

Booleans = NDArray[np.bool_]
"""Masks."""

NO_BIN = -1
"""Bin of a node that is in no bin."""

NO_TOPOLOGY = -1
"""Topology of single pods, which need no block."""

NO_TYPE = -1
"""Item type of a variant without accelerators, which needs no place."""


@dataclass(frozen=True, slots=True, order=True)
class ItemType:
    """What one unit requires of nodes; sorted so that the hardest to place comes last."""

    total: int
    """Accelerators of all pods that are placed together."""

    accelerators: int
    """Accelerators per pod."""

    pods: int
    """Pods that are placed together in one block; 1 for single pods."""

    topology: int
    """The topology whose domains are the blocks, or NO_TOPOLOGY."""

    bins: tuple[int, ...]
    """The bins that the unit may use."""


def item_type(terms: VariantTerms, bins: Iterable[int]) -> ItemType:
    """Return the item type of a variant's unit in some bins: a pod, or a gang of pods."""
    gang = terms.together is not None
    return ItemType(
        total=terms.accelerators * (terms.pods if gang else 1),
        accelerators=terms.accelerators,
        pods=terms.pods if gang else 1,
        topology=NO_TOPOLOGY if terms.together is None else terms.together,
        bins=tuple(bins),
    )


def pod_type(accelerators: int, bin_: int) -> ItemType:
    """Return the item type of a single pod in a bin."""
    return ItemType(accelerators, accelerators, 1, NO_TOPOLOGY, (bin_,))


@dataclass(frozen=True, kw_only=True)
class Nodes:
    """The nodes as arrays, and the slot rows over them; rows of a bin are contiguous."""

    bin: Integers
    """(nodes,): the bin, or NO_BIN."""

    block: Integers
    """(nodes,): the block for the gangs of its bin; NO_DOMAIN for none."""

    growth_block: Integers
    """(growths,): the block of the nodes that a growth adds; NO_DOMAIN for none."""

    row_bin: Integers
    """(slot rows,): the bin of the slots."""

    row_size: Integers
    """(slot rows,): accelerators of each slot."""

    row_pods: Integers
    """(slot rows,): how many such slots of one block form one gang slot; 1 for slots of single nodes."""

    is_exact: Booleans
    """(bins,): whether the slot rows are sufficient."""

    def slots(self, free: Integers) -> Integers:
        """Return the slots of each row for some free accelerators of the nodes, (rows,)."""
        counts = []
        room = np.maximum(free, 0)
        keys = zip(self.row_bin.tolist(), self.row_size.tolist(), self.row_pods.tolist(), strict=True)
        for bin_, size, pods in keys:
            here = self.bin == bin_
            per_node = room[here] // size
            if pods > 1:
                known = self.block[here] >= 0
                per_block = np.bincount(self.block[here][known], weights=per_node[known], minlength=1)
                per_node = per_block.astype(np.int64) // pods
            counts.append(int(per_node.sum()))
        return np.array(counts, dtype=np.int64)

    def uses(self, kind: ItemType) -> Integers:
        """Return the slots of each row that a unit takes at least, wherever it is placed, (rows,)."""
        per_row: Integers = kind.pods * (kind.accelerators // self.row_size) // self.row_pods
        # A smaller gang may be placed where no larger one fits, so it need not take any of its slots. Neither
        # need a single pod, which may be placed on a node outside any block.
        counts = (self.row_pods == 1) | (kind.pods > 1)
        return np.where(np.isin(self.row_bin, kind.bins) & counts, per_row, 0)


def nodes_of(problem: PlacementProblem) -> Nodes:
    """Return the nodes with the slot rows of all bins."""
    node_bin = np.full(len(problem.free), NO_BIN, dtype=np.int64)
    block = np.full(len(problem.free) + len(problem.growth), NO_DOMAIN, dtype=np.int64)
    keys: list[tuple[int, int, int]] = []
    exact = []
    for index, bin_ in enumerate(problem.bins):
        nodes = list(bin_.nodes)
        node_bin[nodes] = index
        gangs = {
            (problem.variants[v].accelerators, problem.variants[v].pods, t)
            for v in bin_.variants
            if (t := problem.variants[v].together) is not None
        }
        topologies = sorted({t for _, _, t in gangs})
        kinds = {(size, 1) for size in bin_.sizes}
        grown = [g for g, terms in enumerate(problem.growth) if terms.bin == index and terms.domains]
        members = nodes + [len(problem.free) + g for g in grown]
        if topologies and members:
            domains = np.array(
                [
                    [problem.topologies[t][node] for node in nodes]
                    + [problem.growth[g].domains[t] for g in grown]
                    for t in topologies
                ]
            )
            block[members] = np.where(
                (domains == NO_DOMAIN).any(axis=0),
                NO_DOMAIN,
                np.unique(domains, axis=1, return_inverse=True)[1].ravel(),
            )
        if len(topologies) == 1:
            kinds |= {(size, pods) for size, pods, _ in gangs}
        # A pod as large as a gang can take its place, but is not counted in gang slots (see `Nodes.uses`).
        fills_gang = any(size // own >= pods for size in bin_.sizes for own, pods, _ in gangs)
        is_exact = len(topologies) <= 1 and _divides(kinds) and not fills_gang
        exact.append(is_exact)
        if not is_exact:
            kinds.add((1, 1))
        keys += [(index, size, pods) for size, pods in sorted(kinds, key=lambda k: (k[1], k[0]))]
    row_bin, row_size, row_pods = np.array(keys, dtype=np.int64).reshape(-1, 3).T
    return Nodes(
        bin=node_bin,
        block=block[: len(problem.free)],
        growth_block=block[len(problem.free) :],
        row_bin=row_bin,
        row_size=row_size,
        row_pods=row_pods,
        is_exact=np.array(exact, dtype=np.bool_),
    )


def _divides(kinds: Iterable[tuple[int, int]]) -> bool:
    """Return whether each kind takes a whole number of the slots of every kind that is placed later."""
    in_order = sorted(kinds, key=lambda kind: (kind[0] * kind[1], kind[0]))
    return all(
        large % small == 0 and many * (large // small) % few == 0
        for (small, few), (large, many) in combinations(in_order, 2)
    )


@dataclass(frozen=True, kw_only=True)
class SharedRows:
    """Item types and the rows that all models share. Rows of use are those of types, then those of limits."""

    nodes: Nodes
    """The nodes, with the slot rows."""

    types: tuple[ItemType, ...]
    """The item types of all units, sorted."""

    uses: Floats
    """(types, slot rows): slots that a unit takes in the row's bin; 0 where it is not allowed."""

    allowed: Booleans
    """(types, bins): whether a unit is allowed there."""

    slots: Integers
    """(slot rows,): slots after every bound replica that may leave has left."""

    limits: Integers
    """(limit rows,): the amount of each limit."""

    limit_rows: tuple[LimitRow, ...]
    """The limits over several models."""

    growth_price: Integers
    """(growths,): cost of an added node."""

    growth_limit: Integers
    """(growths,): the maximum number of added nodes."""

    growth_slots: Integers
    """(growths, slot rows): slots that an added node provides."""

    @cached_property
    def row_names(self) -> tuple[RowName, ...]:
        """(bin, size, pods) of each slot row, then the name of each limit."""
        rows = (self.nodes.row_bin.tolist(), self.nodes.row_size.tolist(), self.nodes.row_pods.tolist())
        return (*zip(*rows, strict=True), *(f"{row.kind} {row.name}" for row in self.limit_rows))

    def type_prices(self, slot_prices: Floats) -> Floats:
        """Return the price of a unit of each type in the cheapest of its bins, (types,); 0 without a bin."""
        bins = self.allowed.shape[1]
        in_bin = (self.nodes.row_bin[:, None] == np.arange(bins)).astype(np.float64)
        paid = np.where(self.allowed, (self.uses * slot_prices) @ in_bin, np.inf)
        least: Floats = paid.min(axis=1, initial=np.inf)
        return np.where(np.isfinite(least), least, 0.0)

    def most_units(self) -> Integers:
        """Return the maximum number of units of each type, if nothing else is placed, (types,)."""
        slots = self.slots + (self.growth_slots * self.growth_limit[:, None]).sum(axis=0)
        uses = self.uses.astype(np.int64)
        huge = np.iinfo(np.int64).max
        per_row = np.where(uses > 0, slots // np.maximum(uses, 1), huge)
        most = np.zeros(len(self.types), dtype=np.int64)
        for bin_ in range(self.allowed.shape[1]):
            here = self.nodes.row_bin == bin_
            most += np.where(self.allowed[:, bin_], per_row[:, here].min(axis=1, initial=huge), 0)
        return most


def shared_of(
    problem: PlacementProblem, nodes: Nodes, types: Sequence[ItemType], limit_rows: Sequence[LimitRow]
) -> SharedRows:
    """Return the shared rows, given all item types."""
    allowed = np.zeros((len(types), len(problem.bins)), dtype=np.bool_)
    for index, kind in enumerate(types):
        allowed[index, list(kind.bins)] = True
    emptied = np.array(
        free_after_removals(problem, tuple(terms.lower for terms in problem.variants)), dtype=np.int64
    )
    # An overcommitted node has nothing free, and gains all that leaves it: an upper bound.
    free = np.array(problem.free, dtype=np.int64)
    gained = np.maximum(free, 0) + emptied - free
    numbers = [(g.bin, g.accelerators, g.price, g.limit) for g in problem.growth]
    bin_, size, price, limit = np.array(numbers, dtype=np.int64).reshape(-1, 4).T
    brings = (nodes.row_bin == bin_[:, None]) & (
        (nodes.row_pods == 1) | (nodes.growth_block[:, None] != NO_DOMAIN)
    )
    return SharedRows(
        nodes=nodes,
        types=tuple(types),
        uses=np.array([nodes.uses(kind) for kind in types], dtype=np.float64).reshape(
            len(types), len(nodes.row_bin)
        ),
        allowed=allowed,
        slots=nodes.slots(gained),
        limits=np.array([limit_of(row, problem) for row in limit_rows], dtype=np.int64),
        limit_rows=tuple(limit_rows),
        growth_price=price,
        growth_limit=limit,
        # A node may complete a gang slot of others, so a part of a gang slot counts as a whole one.
        growth_slots=np.where(brings, -(-(size[:, None] // nodes.row_size) // nodes.row_pods), 0),
    )


def limit_of(row: LimitRow, problem: PlacementProblem) -> int:
    """Return the amount of a limit, raised to what the replicas that must stay use."""
    return max(row.limit, sum(amount * problem.variants[v].lower for v, amount in row.terms))
