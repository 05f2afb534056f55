"""What models share: slots on nodes, quotas and budgets, nodes that can be added.

A class is what replicas ask of nodes: a size, and the bins they may go to. Everything in a class is alike
to the nodes, so only how many there are of each counts. A slot of size s is room for s accelerators on one
node; a replica of size k >= s holds floor(k / s) of them wherever it goes. Where sizes divide each other,
replicas fit exactly when no size's slots run out (see `problem.Bin`); elsewhere that is necessary, and
sufficient for sizes rounded up to powers of two.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Booleans, Integers
    from controller.planning.problem import Bin, PlacementProblem


NO_CLASS = -1
"""Of a variant whose replicas need no accelerator."""

NO_BIN = -1
"""Of a node that nobody may use."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Resources:
    """Classes and rows in arrays. Rows are those of slots, one per bin and size, and then those of limits."""

    class_of: Integers
    """(variants,): class, or NO_CLASS."""

    sizes: Integers
    """(classes,): accelerators per replica."""

    allowed: Booleans
    """(classes, bins): where replicas of the class may go."""

    uses: Integers
    """(classes, bins, slot rows): how many slots a replica holds there at least; 0 where it may not go."""

    safe_uses: Integers
    """(classes, bins, slot rows): as many as are enough for it, wherever the others are."""

    is_exact: Booleans
    """(bins,): whether the two are the same."""

    row_bin: Integers
    row_size: Integers
    """(slot rows,)."""

    free: Integers
    """(nodes,): when every bound replica stays; negative when overcommitted."""

    node_bin: Integers
    """(nodes,): bin, or NO_BIN."""

    slots: Integers
    """(slot rows,): how many are free when every bound replica stays."""

    most_slots: Integers
    """(slot rows,): how many there are when every bound replica that may go has gone."""

    settled: Integers
    """(variants,): bound replicas that are not counted against the most slots."""

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

    @property
    def capacity(self) -> Integers:
        """(rows,): of the most slots, then of the limits."""
        return np.concatenate([self.most_slots, self.limits])

    @property
    def is_allowed_anywhere(self) -> Booleans:
        """(variants,): whether there is a bin for new replicas."""
        anywhere: Booleans = np.append(self.allowed.any(axis=1), values=False)[self.class_of]
        return anywhere

    @property
    def most_replicas(self) -> Integers:
        """(classes,): more than this many can never find room."""
        slots = self.most_slots + (self.growth_slots * self.growth_limit[:, None]).sum(axis=0)
        per_row = np.where(self.uses > 0, slots // np.maximum(self.uses, 1), np.iinfo(np.int64).max)
        fits = per_row.min(axis=2, initial=np.iinfo(np.int64).max)
        most: Integers = np.where(self.allowed, fits, 0).sum(axis=1)
        return most


def resources_of(problem: PlacementProblem) -> Resources:
    """Return the problem's shared resources."""
    classes, class_of = _classes(problem)
    allowed = np.zeros((len(classes), len(problem.bins)), dtype=np.bool_)
    for index, (_, bins) in enumerate(classes):
        allowed[index, list(bins)] = True
    sizes = np.array([size for size, _ in classes], dtype=np.int64)
    chains = [_chain(bin_) for bin_ in problem.bins]
    rows = [
        (index, size)
        for index, chain in enumerate(chains)
        for size in sorted({*chain, *problem.bins[index].sizes})
    ]
    row_bin, row_size = np.array(rows, dtype=np.int64).reshape(-1, 2).T
    in_chain = np.array([size in chains[bin_] for bin_, size in rows], dtype=np.bool_)
    is_exact = np.array(
        [chain == bin_.sizes for chain, bin_ in zip(chains, problem.bins, strict=True)], dtype=np.bool_
    )
    node_bin = np.full(len(problem.free), NO_BIN, dtype=np.int64)
    for index, bin_ in enumerate(problem.bins):
        node_bin[list(bin_.nodes)] = index
    free = np.array(problem.free, dtype=np.int64)
    leaving, settled = _leaving(problem, node_bin, allowed, class_of)
    growth_bin = np.array([growth.bin for growth in problem.growth], dtype=np.int64)
    growth_size = np.array([growth.accelerators for growth in problem.growth], dtype=np.int64)
    amounts = _limit_amounts(problem)
    lower = np.array([terms.lower for terms in problem.variants], dtype=np.int64)
    return Resources(
        class_of=class_of,
        sizes=sizes,
        allowed=allowed,
        uses=_uses(sizes, allowed, row_bin, row_size),
        safe_uses=_safe_uses(sizes, allowed, chains, rows, in_chain),
        is_exact=is_exact,
        row_bin=row_bin,
        row_size=row_size,
        free=free,
        node_bin=node_bin,
        slots=slots_of(free, node_bin, row_bin, row_size),
        # What stays on an overcommitted node has its room all the same.
        most_slots=slots_of(np.maximum(free, 0) + leaving, node_bin, row_bin, row_size),
        settled=settled,
        limits=np.maximum(np.array([row.limit for row in problem.limits], dtype=np.int64), amounts @ lower),
        limit_amounts=amounts,
        growth_bin=growth_bin,
        growth_size=growth_size,
        growth_slots=np.where(
            row_bin == growth_bin[:, None], growth_size[:, None] // np.maximum(row_size, 1), 0
        ),
        growth_price=np.array([growth.price for growth in problem.growth], dtype=np.int64),
        growth_limit=np.array([growth.limit for growth in problem.growth], dtype=np.int64),
    )


def _classes(problem: PlacementProblem) -> tuple[list[tuple[int, tuple[int, ...]]], Integers]:
    """Return (size, bins) of each class, and the class of each variant."""
    bins_of: list[list[int]] = [[] for _ in problem.variants]
    for index, bin_ in enumerate(problem.bins):
        for variant in bin_.variants:
            bins_of[variant].append(index)
    kinds = [
        (terms.accelerators, tuple(bins)) if terms.accelerators else None
        for terms, bins in zip(problem.variants, bins_of, strict=True)
    ]
    classes = sorted({kind for kind in kinds if kind})
    number = {kind: index for index, kind in enumerate(classes)}
    return classes, np.array([number[kind] if kind else NO_CLASS for kind in kinds], dtype=np.int64)


def _chain(bin_: Bin) -> tuple[int, ...]:
    """Return the bin's sizes if each divides the next, else powers of two up to the largest, rounded up."""
    if bin_.is_divisible:
        return bin_.sizes
    return tuple(2**power for power in range((bin_.sizes[-1] - 1).bit_length() + 1))


def _uses(sizes: Integers, allowed: Booleans, row_bin: Integers, row_size: Integers) -> Integers:
    per_row = sizes[:, None] // np.maximum(row_size, 1)[None, :]
    here = row_bin[None, :] == np.arange(allowed.shape[1])[:, None]
    uses: Integers = per_row[:, None, :] * here[None, :, :] * allowed[:, :, None]
    return uses


def _safe_uses(
    sizes: Integers,
    allowed: Booleans,
    chains: Sequence[tuple[int, ...]],
    rows: Sequence[tuple[int, int]],
    in_chain: Booleans,
) -> Integers:
    uses = np.zeros((*allowed.shape, len(rows)), dtype=np.int64)
    for group, bin_ in np.argwhere(allowed).tolist():
        rounded = min(size for size in chains[bin_] if size >= sizes[group])
        for row in np.flatnonzero(in_chain).tolist():
            if rows[row][0] == bin_:
                uses[group, bin_, row] = rounded // rows[row][1]
    return uses


def slots_of(free: Integers, node_bin: Integers, row_bin: Integers, row_size: Integers) -> Integers:
    """Return how many slots of each row the nodes have."""
    counts = [
        int((np.maximum(free[node_bin == bin_], 0) // size).sum())
        for bin_, size in zip(row_bin.tolist(), row_size.tolist(), strict=True)
    ]
    return np.array(counts, dtype=np.int64)


def _leaving(
    problem: PlacementProblem, node_bin: Integers, allowed: Booleans, class_of: Integers
) -> tuple[Integers, Integers]:
    """Return what each node gains when all that may go has gone, and the bound replicas not counted there."""
    gained = np.zeros(len(problem.free), dtype=np.int64)
    settled = np.zeros(len(problem.variants), dtype=np.int64)
    for variant, terms in enumerate(problem.variants):
        for turn, node in enumerate(terms.bound):
            may_go = node is not None and turn < len(terms.bound) - terms.lower
            if may_go:
                gained[node] += terms.accelerators
            bin_ = node_bin[node] if may_go else NO_BIN
            if bin_ == NO_BIN or class_of[variant] == NO_CLASS or not allowed[class_of[variant], bin_]:
                settled[variant] += 1
    return gained, settled


def _limit_amounts(problem: PlacementProblem) -> Integers:
    amounts = np.zeros((len(problem.limits), len(problem.variants)), dtype=np.int64)
    for index, row in enumerate(problem.limits):
        for variant, amount in row.terms:
            amounts[index, variant] += amount
    return amounts
