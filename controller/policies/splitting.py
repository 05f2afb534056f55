"""How many replicas of each of several unlike targets: an integer program, solved exactly.

Of all mixes within the targets' bounds that serve what is required, those count whose cost is at most
`expansion_percent` of the least possible. Of these, the one with the least capacity beyond what is required
is chosen; then the least cost; then the fewest replicas to be started or stopped; then the targets in order.

Capacities are counted in their greatest common divisor, to a thousandth, and what a mix of exactly so much
costs at least is found for every amount, part by part (a bounded knapsack). Of a very large requirement, all
but the last amounts are taken from the targets that serve most for their cost: alike targets are shared
exactly all the same, unlike ones nearly so.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_FINENESS: Final = 1000
_NEARLY: Final = 1e-6
_MOST_CELLS: Final = 2_000_000
"""Amounts times parts that are looked at."""

_LARGEST_KEY: Final = 2**61
_WHOLE_PERCENT: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """One target: what its replicas cost and serve, how many there may be, and how many there are."""

    min_replicas: int
    max_replicas: int
    cost: int = 0
    capacity: float = 1.0
    """What a replica serves beside one of capacity 1; 0.001 at least."""

    current_replicas: int = 0


class _Part(NamedTuple):
    """Some replicas of one target that are taken together or not at all."""

    share: int
    replicas: int
    amount: int
    key: int


def capacity_of(shares: Sequence[Share], replicas: Sequence[int]) -> float:
    """Return what a mix serves."""
    return math.fsum(share.capacity * count for share, count in zip(shares, replicas, strict=True))


def split(required: float, shares: Sequence[Share], *, expansion_percent: int) -> tuple[int, ...]:
    """Return the replicas of each target; the most of each where even that is not enough."""
    sizes, unit = _amounts(shares)
    most = [share.max_replicas for share in shares]
    replicas = [share.min_replicas for share in shares]
    available = capacity_of(shares, most)
    needed = _missing(min(required, available), shares, replicas, unit)
    if needed >= _missing(available, shares, replicas, unit):
        return tuple(most)
    fewest_parts = 2 * len(shares) * max(1, needed).bit_length()
    for place in sorted(range(len(shares)), key=lambda place: _dearness(shares[place], place)):
        excess = needed - max(2 * max(sizes), _MOST_CELLS // fewest_parts)
        taken = min(max(0, excess) // sizes[place], most[place] - replicas[place])
        replicas[place] += taken
        needed -= taken * sizes[place]
    rest = [replace(share, min_replicas=count) for share, count in zip(shares, replicas, strict=True)]
    added = _added(needed, rest, sizes, expansion_percent) if needed > 0 else [0] * len(shares)
    return tuple(count + more for count, more in zip(replicas, added, strict=True))


def _amounts(shares: Sequence[Share]) -> tuple[list[int], int]:
    """Return the capacities as multiples of a unit, and that unit in thousandths."""
    sizes = [max(1, round(share.capacity * _FINENESS)) for share in shares]
    unit = math.gcd(*sizes)
    return [size // unit for size in sizes], unit


def _missing(required: float, shares: Sequence[Share], replicas: Sequence[int], unit: int) -> int:
    rest = (required - capacity_of(shares, replicas)) * _FINENESS / unit
    return max(0, math.ceil(rest - _NEARLY))


def _dearness(share: Share, place: int) -> tuple[float, bool, int]:
    return share.cost / share.capacity, share.current_replicas <= share.min_replicas, place


def _added(needed: int, shares: Sequence[Share], sizes: Sequence[int], expansion_percent: int) -> list[int]:
    most = needed + max(sizes) - 1
    step, parts = _parts(shares, sizes, most)
    base = sum(share.cost * share.min_replicas for share in shares)
    best, taken = _cheapest(parts, most)
    keys = best[needed:]
    least_cost = min(int(key) for key in keys) // step
    budget = (base + least_cost) * max(_WHOLE_PERCENT, expansion_percent) // _WHOLE_PERCENT - base
    amount = needed + next(place for place, key in enumerate(keys) if int(key) // step <= budget)
    added = [0] * len(shares)
    for part, is_taken in zip(reversed(parts), reversed(taken), strict=True):
        if is_taken[amount]:
            added[part.share] += part.replicas
            amount -= part.amount
    return added


def _parts(shares: Sequence[Share], sizes: Sequence[int], most: int) -> tuple[int, list[_Part]]:
    """Return parts of which any useful number of replicas can be made, and what a cost of 1 counts in keys.

    A key orders by cost, then by replicas started, then by position. Those that are there come first.
    """
    useful = [
        min(share.max_replicas - share.min_replicas, most // size)
        for share, size in zip(shares, sizes, strict=True)
    ]
    moved = len(shares) * sum(useful) + 1
    step = moved * (2 * sum(useful) + 1)
    parts = []
    for place, (share, size, count) in enumerate(zip(shares, sizes, useful, strict=True)):
        kept = min(count, max(0, share.current_replicas - share.min_replicas))
        for group, is_new in ((kept, False), (count - kept, True)):
            key = share.cost * step + 2 * is_new * moved + place
            parts += [_Part(place, some, some * size, some * key) for some in _binary(group)]
    return step, parts


def _binary(count: int) -> Iterator[int]:
    """Yield numbers of which some together make any number up to a count, and none beyond."""
    some = 1
    while count > 0:
        yield min(some, count)
        count -= some
        some *= 2


def _cheapest(parts: Sequence[_Part], most: int) -> tuple[NDArray[Any], list[NDArray[np.bool_]]]:
    """Return the least key of each amount, and for each part in which amounts it is taken last."""
    is_small = sum(part.key for part in parts) < _LARGEST_KEY
    never = _LARGEST_KEY if is_small else sum(part.key for part in parts) + 1
    best = np.full(most + 1, never, dtype=np.int64 if is_small else object)
    best[0] = 0
    taken = []
    for part in parts:
        is_better = np.zeros(most + 1, dtype=np.bool_)
        if part.amount <= most:
            offered = best[: most + 1 - part.amount] + part.key
            is_better[part.amount :] = offered < best[part.amount :]
            best[part.amount :] = np.where(is_better[part.amount :], offered, best[part.amount :])
        taken.append(is_better)
    return best, taken
