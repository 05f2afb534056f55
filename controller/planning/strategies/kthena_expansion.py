"""Blocks of replicas in order of their cost, as Kthena's autoscaler splits a total over its backends.

Each variant's range is cut into blocks of 1, 2, 4, ... replicas (`costExpansionRatePercent` 200) and the
blocks of all variants are sorted by what a whole block costs. A total fills them in that order. What a
replica can do is not known to it; it is given the smallest total whose order meets the demand, the best fixed
point that its feedback loop could find. Models know nothing of each other: accelerators go by arrival.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from controller.planning.strategies.asking import Asking, askings, floors, missing
from controller.planning.strategies.granting import by_arrival, granted, pending

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from controller.planning.problem import PlacementProblem, Solution

DEFAULT_RATE_PERCENT: Final = 200
_ONE_BLOCK_PERCENT: Final = 100


def place(problem: PlacementProblem, *, rate_percent: int = DEFAULT_RATE_PERCENT) -> Solution:
    """Return the plan as far as limits and nodes allow."""
    return granted(problem, counts(problem, rate_percent=rate_percent), by_arrival(problem))


def pending_accelerators(problem: PlacementProblem, *, rate_percent: int = DEFAULT_RATE_PERCENT) -> int:
    """Return how many accelerators the counts ask for and no node has."""
    return pending(problem, counts(problem, rate_percent=rate_percent), by_arrival(problem))


def counts(problem: PlacementProblem, *, rate_percent: int = DEFAULT_RATE_PERCENT) -> tuple[int, ...]:
    """Return the replicas of each variant, as if there were accelerators for all.

    Raises ValueError for a rate below 100.
    """
    if rate_percent < _ONE_BLOCK_PERCENT:
        raise ValueError(f"rate_percent: {rate_percent} is less than 100; blocks can't shrink")
    models = askings(problem)
    replicas = floors(problem, models)
    for model in models:
        _expand(problem, model, replicas, rate_percent)
    return tuple(replicas)


def blocks(length: int, rate_percent: int) -> Iterator[int]:
    """Yield the lengths of the blocks that so many replicas are cut into."""
    if rate_percent == _ONE_BLOCK_PERCENT:
        yield from [length] if length else []
        return
    size = 1.0
    while length:
        block = min(length, int(size))
        yield block
        length -= block
        size = size * rate_percent / _ONE_BLOCK_PERCENT


def _expand(problem: PlacementProblem, model: Asking, replicas: list[int], rate_percent: int) -> None:
    """Fill blocks in order until every requirement of the model is met."""
    order = sorted(
        (problem.variants[v].cost * block, v, block)
        for v in model.variants
        for block in blocks(problem.variants[v].upper - replicas[v], rate_percent)
    )
    for _, v, block in order:
        needed = _needed(model, v, replicas, most=block)
        if not needed:
            return
        replicas[v] += needed


def _needed(model: Asking, variant: int, replicas: Sequence[int], *, most: int) -> int:
    """Return how much of a block is filled: all, unless less of it meets what is still missing."""
    needs = []
    for row in model.wanted:
        lacking = missing(row, replicas)
        if lacking > 0 and row.terms:
            amount = dict(row.terms).get(variant)
            needs.append(min(most, -(-lacking // amount)) if amount else most)
    return max(needs, default=0)
