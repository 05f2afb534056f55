"""What models share: slots on nodes, quotas and budgets, nodes that can be added.

A class is what replicas ask of nodes: a size, and the bins they may go to. Everything in a class is alike
to the nodes, so only how many there are of each counts. A slot of size s is room for s accelerators on one
node; a replica of size k >= s holds floor(k / s) of them wherever it goes. Where sizes divide each other,
replicas fit exactly when no size's slots run out (see `problem.Bin`); elsewhere that is necessary, and
sufficient for sizes rounded up to powers of two.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.classes import NO_CLASS, NO_VARIANT, classes_of
from controller.planning.columns.slots import SlotRows, count_slots
from controller.planning.problem import UNLIMITED_REPLICAS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.classes import PlaceClass
    from controller.planning.problem import PlacementProblem, VariantTerms

NO_BIN = -1
"""Of a node that nobody may use."""


@dataclass(frozen=True, kw_only=True)
class Resources:
    """Classes and rows in arrays. Rows are those of slots, one per bin and size, and then those of limits."""

    class_of: Integers
    """(variants,): class, or NO_CLASS."""

    domain_classes: Mapping[int, tuple[int, ...]]
    """Variant -> class in each domain that it spreads its pods over."""

    sizes: Integers
    """(classes,): accelerators per pod."""

    pods: Integers
    """(classes,): how many pods go together to one block of nodes; 1 for those that go by themselves."""

    allowed: Booleans
    """(classes, bins): where pods of the class may go."""

    uses: Integers
    """(classes, bins, slot rows): how many slots a pod holds there at least; 0 where it may not go."""

    safe_uses: Integers
    """(classes, bins, slot rows): as many as are enough for it, wherever the others are."""

    is_exact: Booleans
    """(bins,): whether the two are the same."""

    fits_by_slots: Booleans
    """(bins,): whether slots decide what fits there, by the safe uses if the two differ."""

    is_apart: Booleans
    """(bins,): whether few pods of some variant may share a node there."""

    apart: Mapping[int, tuple[int, Counter[int]]]
    """Class -> most pods on one node, and how many lie on each when all stay; where there is such a rule."""

    fits_by_nodes: Booleans
    """(bins,): whether each of its nodes is looked at by itself; elsewhere patterns decide."""

    row_bin: Integers
    row_size: Integers
    row_pods: Integers
    """(slot rows,): bin, size, and how many slots of that size in one block make one of its own."""

    free: Integers
    """(nodes,): when every bound replica stays; negative when overcommitted."""

    node_bin: Integers
    """(nodes,): bin, or NO_BIN."""

    node_block: Integers
    """(nodes,): the domain that pods which go together share; NO_DOMAIN where none do."""

    slots: Integers
    """(slot rows,): how many are free when every bound replica stays."""

    most_slots: Integers
    """(slot rows,): how many there are when every bound replica that may go has gone."""

    settled: Integers
    """(variants,): of bound replicas, what is not counted against the most slots, in what classes count."""

    most_apart: Integers
    """(variants,): more replicas than this never find nodes on which few enough of their own are."""

    counted: tuple[tuple[tuple[int, ...], ...], ...]
    """Per variant and bound replica, in removal order: the bins of what is counted."""

    limits: Integers
    """(limit rows,): at least what those replicas use that must not be touched."""

    limit_amounts: Integers
    """(limit rows, variants): per replica."""

    growth_bin: Integers
    growth_size: Integers
    """(growths,): accelerators of one added node."""

    growth_slots: Integers
    """(growths, slot rows): what it brings."""

    growth_price: Integers
    growth_limit: Integers

    @cached_property
    def own_uses(self) -> Floats:
        """(classes, slot rows): how many slots of each row a pod holds in the row's bin."""
        own: Floats = self.uses[:, self.row_bin, np.arange(len(self.row_bin))].astype(np.float64)
        return own

    @cached_property
    def own_safe_uses(self) -> Integers:
        """(classes, slot rows): how many slots of each row are enough for a pod in the row's bin."""
        return self.safe_uses[:, self.row_bin, np.arange(len(self.row_bin))]

    @cached_property
    def bin_starts(self) -> Integers:
        """The first slot row of each bin that has any; rows of a bin stand together."""
        return np.flatnonzero(np.diff(self.row_bin, prepend=NO_BIN))

    @cached_property
    def most_safe_uses(self) -> Integers:
        """(classes, slot rows): the most slots of each row that a pod holds in any bin."""
        most: Integers = self.safe_uses.max(axis=1, initial=0)
        return most

    @cached_property
    def has_blocks(self) -> bool:
        """Whether some rows are of blocks of nodes."""
        return bool((self.row_pods > 1).any())

    @cached_property
    def in_bin(self) -> Floats:
        """(slot rows, bins): 1 where the row is the bin's."""
        is_own: Floats = (self.row_bin[:, None] == np.arange(self.allowed.shape[1])).astype(np.float64)
        return is_own

    def bin_prices(self, slot_prices: Floats) -> Floats:
        """Return what a pod of each class pays in each bin, (classes, bins); infinite where it may not go."""
        paid: Floats = np.where(self.allowed, (self.own_uses * slot_prices) @ self.in_bin, np.inf)
        return paid

    @property
    def capacity(self) -> Integers:
        """(rows,): of the most slots, then of the limits."""
        return np.concatenate([self.most_slots, self.limits])

    @property
    def fits_exactly(self) -> bool:
        """Whether what is said to fit is all that fits."""
        by_patterns = ~self.fits_by_slots & ~self.is_apart
        return bool(((self.is_exact & ~self.is_apart) | by_patterns | self.fits_by_nodes).all())

    def most_on_nodes(self, group: int, nodes: Integers) -> Integers:
        """Return how many new pods of a class its own rule admits on each node, whatever room there is."""
        if group not in self.apart:
            return np.full(len(nodes), UNLIMITED_REPLICAS, dtype=np.int64)
        most, lying = self.apart[group]
        return np.array([max(0, most - lying[node]) for node in nodes.tolist()], dtype=np.int64)

    @property
    def is_allowed_anywhere(self) -> Booleans:
        """(variants,): whether there is a bin for new replicas."""
        anywhere: Booleans = np.append(self.allowed.any(axis=1), values=False)[self.class_of]
        return anywhere

    @cached_property
    def most_slots_grown(self) -> Integers:
        """(slot rows,): the most slots, with those of all nodes that could be added."""
        grown: Integers = self.most_slots + (self.growth_slots * self.growth_limit[:, None]).sum(axis=0)
        return grown

    @cached_property
    def most_replicas(self) -> Integers:
        """(classes,): more than this many can never find room."""
        slots = self.most_slots_grown
        per_row = np.where(self.uses > 0, slots // np.maximum(self.uses, 1), np.iinfo(np.int64).max)
        fits = per_row.min(axis=2, initial=np.iinfo(np.int64).max)
        most: Integers = np.where(self.allowed, fits, 0).sum(axis=1)
        return most

    def after(self, gone: Integers) -> Resources:
        """Return the same once so many accelerators have left each node for certain, (nodes,)."""
        if not gone.any():
            return self
        free = self.free + gone
        return replace(self, free=free, slots=self.slots_with(free, self.node_bin, self.node_block))

    def slots_with(self, free: Integers, node_bin: Integers, node_block: Integers) -> Integers:
        """Return how many slots of each row some nodes have."""
        return count_slots(
            free,
            node_bin=node_bin,
            node_block=node_block,
            row_bin=self.row_bin,
            row_size=self.row_size,
            row_pods=self.row_pods,
        )


def resources_of(problem: PlacementProblem) -> Resources:
    """Return the problem's shared resources."""
    classes, class_of, domain_classes = classes_of(problem)
    allowed = np.zeros((len(classes), len(problem.bins)), dtype=np.bool_)
    for index, kind in enumerate(classes):
        allowed[index, list(kind.bins)] = True
    rows = SlotRows(problem, classes)
    node_bin = np.full(len(problem.free), NO_BIN, dtype=np.int64)
    for index, bin_ in enumerate(problem.bins):
        node_bin[list(bin_.nodes)] = index
    free = np.array(problem.free, dtype=np.int64)
    node_block = rows.node_block(node_bin)
    gained, counted = _leaving(problem, node_bin, node_block, classes, class_of)
    amounts = _limit_amounts(problem)
    lower = np.array([terms.lower for terms in problem.variants], dtype=np.int64)
    slots = rows.slots(node_bin, node_block)
    return Resources(
        class_of=class_of,
        domain_classes=domain_classes,
        sizes=np.array([kind.size for kind in classes], dtype=np.int64),
        pods=np.array([kind.pods for kind in classes], dtype=np.int64),
        allowed=allowed,
        uses=rows.uses(allowed),
        safe_uses=rows.safe_uses(allowed),
        is_exact=rows.is_exact,
        fits_by_slots=rows.fits_by_slots,
        fits_by_nodes=rows.fits_by_nodes,
        is_apart=rows.is_apart,
        apart=_apart(problem, classes),
        row_bin=rows.bin,
        row_size=rows.size,
        row_pods=rows.pods,
        free=free,
        node_bin=node_bin,
        node_block=node_block,
        slots=slots(free),
        # What stays on an overcommitted node has its room all the same.
        most_slots=slots(np.maximum(free, 0) + gained),
        settled=np.array(
            [
                len(terms.bound) * _units(terms) - sum(map(len, bins))
                for terms, bins in zip(problem.variants, counted, strict=True)
            ],
            dtype=np.int64,
        ),
        most_apart=_most_apart(problem, np.maximum(free, 0) + gained),
        counted=counted,
        limits=np.maximum(np.array([row.limit for row in problem.limits], dtype=np.int64), amounts @ lower),
        limit_amounts=amounts,
        **_growth(problem, rows),
    )


def _growth(problem: PlacementProblem, rows: SlotRows) -> dict[str, Integers]:
    """Return what is known of nodes that can be added, in arrays."""
    numbers = [(growth.bin, growth.accelerators, growth.price, growth.limit) for growth in problem.growth]
    bin_, size, price, limit = np.array(numbers, dtype=np.int64).reshape(-1, 4).T
    brings = (rows.bin == bin_[:, None]) & (rows.pods == 1)
    return {
        "growth_bin": bin_,
        "growth_size": size,
        "growth_slots": np.where(brings, size[:, None] // np.maximum(rows.size, 1), 0),
        "growth_price": price,
        "growth_limit": limit,
    }


def _leaving(
    problem: PlacementProblem,
    node_bin: Integers,
    node_block: Integers,
    classes: Sequence[PlaceClass],
    class_of: Integers,
) -> tuple[Integers, tuple[tuple[tuple[int, ...], ...], ...]]:
    """Return what each node gains when all that may go has gone, and the bins of what is counted there."""
    gained = np.zeros(len(problem.free), dtype=np.int64)
    bins, blocks = node_bin.tolist(), node_block.tolist()
    counted = []
    for terms, group in zip(problem.variants, class_of.tolist(), strict=True):
        allowed = classes[group].bins if group != NO_CLASS else ()
        places = []
        for turn, nodes in enumerate(terms.bound):
            may_go = turn < len(terms.bound) - terms.lower
            for node in nodes if may_go else ():
                gained[node] += terms.accelerators
            here = tuple(bins[node] for node in nodes if may_go and bins[node] in allowed)
            if terms.together is not None:
                is_whole = len(here) == terms.pods and len({(bins[n], blocks[n]) for n in nodes}) == 1
                here = here[:1] if is_whole else ()
            places.append(here)
        counted.append(tuple(places))
    return gained, tuple(counted)


def _apart(
    problem: PlacementProblem, classes: Sequence[PlaceClass]
) -> Mapping[int, tuple[int, Counter[int]]]:
    found = {}
    for group, kind in enumerate(classes):
        terms = None if kind.alone == NO_VARIANT else problem.variants[kind.alone]
        if terms and terms.most_per_node is not None:
            found[group] = terms.most_per_node, Counter(node for nodes in terms.bound for node in nodes)
    return found


def _most_apart(problem: PlacementProblem, free: Integers) -> Integers:
    """Return how many replicas could ever be apart, given the most that is free on each node, (variants,)."""
    most = np.full(len(problem.variants), UNLIMITED_REPLICAS, dtype=np.int64)
    for v, terms in enumerate(problem.variants):
        if terms.most_per_node is None or not terms.accelerators:
            continue
        lying = Counter(node for nodes in terms.bound for node in nodes)
        fresh = Counter[int]()
        for b, bin_ in enumerate(problem.bins):
            if v in bin_.variants:
                fresh.update({node: int(free[node]) // terms.accelerators for node in bin_.nodes})
                grown = [growth for growth in problem.growth if growth.bin == b]
                fresh[-1] += sum(
                    g.limit * min(terms.most_per_node, g.accelerators // terms.accelerators) for g in grown
                )
        places = sum(
            count if node < 0 else max(lying[node], min(terms.most_per_node, count))
            for node, count in (fresh | lying).items()
        )
        outside = sum(terms.pods - len(nodes) for nodes in terms.bound)
        most[v] = (places + outside) // terms.pods
    return most


def _units(terms: VariantTerms) -> int:
    """Return how many a replica makes in what its class counts."""
    return terms.pods if terms.together is None else 1


def _limit_amounts(problem: PlacementProblem) -> Integers:
    amounts = np.zeros((len(problem.limits), len(problem.variants)), dtype=np.int64)
    for index, row in enumerate(problem.limits):
        for variant, amount in row.terms:
            amounts[index, variant] += amount
    return amounts
