"""Blocks of replicas in order of their cost, as Kthena's autoscaler splits a total over its backends.

Each variant's range is cut into blocks of 1, 2, 4, ... replicas (`costExpansionRatePercent` 200), and the
blocks of all variants are sorted by the cost of a whole block. A total fills them in that order. The
heuristic does not know the capacity of a replica. It is given the smallest total whose order meets the
demand, which is the best fixed point of its feedback loop. Models are independent: accelerators are granted
by arrival.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from controller.planning.problem import VariantTerms
from hack.fleets.rivals.view import ModelWants, RivalView, Want

_MANY_LENGTHS: Final = 4096
"""Cache size for ranges and their blocks, which most variants share with others."""


def counts(view: RivalView) -> tuple[int, ...]:
    """Return the replicas of each variant, as if there were accelerators for all."""
    replicas = list(view.floors)
    for model, lacking in zip(view.models, view.lacking, strict=True):
        # An unknown capacity is no reason to fill blocks.
        if known := [want for want in lacking if want[1]]:
            _expand(view.problem.variants, model, known, replicas)
    return tuple(replicas)


@lru_cache(maxsize=_MANY_LENGTHS)
def blocks(length: int) -> tuple[int, ...]:
    """Return the lengths of the blocks into which a range is cut, each twice the last."""
    lengths, size = [], 1
    while length:
        lengths.append(min(length, size))
        length -= lengths[-1]
        size *= 2
    return tuple(lengths)


def _expand(
    variants: Sequence[VariantTerms],
    model: ModelWants,
    lacking: Sequence[Want],
    replicas: list[int],
) -> None:
    """Fill blocks in order until every requirement of the model is met."""
    order = [
        (variants[v].cost * block, v, block)
        for v in model.variants
        for block in blocks(variants[v].upper - replicas[v])
    ]
    order.sort()
    for _, v, block in order:
        needed = _fill_part(lacking, v, most=block)
        replicas[v] += needed
        lacking = [
            (left, amounts)
            for missing, amounts in lacking
            if (left := missing - needed * amounts.get(v, 0)) > 0
        ]
        if not lacking:
            return


def _fill_part(lacking: Sequence[Want], variant: int, *, most: int) -> int:
    """Return the part of a block to fill: all of it, unless less meets what is missing."""
    needed = 0
    for missing, amounts in lacking:
        amount = amounts.get(variant)
        if not amount or amount * most <= missing:
            return most
        if amount * needed < missing:
            needed = -(-missing // amount)
    return needed
