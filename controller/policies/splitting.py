"""Split a required capacity among different targets, by an integer program with bounded effort.

Of all mixes within the targets' bounds that provide the required capacity, those are admissible whose cost is
at most `expansion_percent` of the minimum. Among these the one with the least excess capacity is chosen; then
the least cost; then the fewest replicas to start; then the order of targets.

Capacities are multiples of their greatest common divisor, to a thousandth. A bounded knapsack finds the
minimum cost of each amount of capacity, part by part. Amounts times parts never exceed `MOST_CELLS`, for
every valid binding:

- The result is exact where that suffices: for targets of equal capacity in any number, and for a few
  different ones with several hundred replicas whose capacities have a common divisor of a tenth or more.
  Costs are always exact.
- Of a very large requirement, all but the last amounts are taken from the targets with the most capacity per
  cost: still exact for equal targets, and nearly so for different ones.
- If many targets have capacities with a tiny common divisor, the last amounts are counted in a coarser grain,
  rounded so that nothing counts for more than it provides. Targets below the grain only fill what is left.
  Such a mix may have more cost or capacity than the best one.

Every mix provides the required capacity if possible, and has no replica that it could do without.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_CELLS: Final = 2_000_000
"""Maximum of amounts times parts."""

_FINENESS: Final = 1000
"""Capacities count in thousandths; smaller differences are not seen."""
_NEARLY: Final = 1e-6
"""Share of a unit by which a sum of capacities may be too large because of rounding."""
_NEVER: Final = 2**61
"""Cost of an amount that no mix has; sums with it stay within 64 bits."""
_WHOLE_PERCENT: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class Share:
    """One target: cost, capacity and bounds of its replicas, and the current number."""

    min_replicas: int
    max_replicas: int
    cost: int = 0
    capacity: float = 1.0
    """Capacity of a replica relative to one of capacity 1; at least 0.001."""

    current_replicas: int = 0


class _Part(NamedTuple):
    """Some replicas of one target that are taken together or not at all."""

    share: int
    replicas: int
    amount: int
    cost: int
    change: int
    """Tie-breaker for equal cost: replicas started, then position."""


class _Remainder(NamedTuple):
    """The remaining problem to be solved exactly, in a grain, after some replicas were already taken."""

    needed: int
    shares: tuple[Share, ...]
    sizes: tuple[int, ...]

    @property
    def most(self) -> int:
        """The largest useful amount."""
        return self.needed + max(self.sizes) - 1

    def groups(self) -> Iterator[tuple[int, int, bool]]:
        """Yield (place, count, is_new) of useful replicas of each target: existing ones, then new ones."""
        for place, (share, size) in enumerate(zip(self.shares, self.sizes, strict=True)):
            span = share.max_replicas - share.min_replicas
            count = min(span, self.most // size) if size else 0
            staying = min(count, max(0, share.current_replicas - share.min_replicas))
            yield place, staying, False
            yield place, count - staying, True

    def cells(self) -> int:
        """Return the number of amounts times parts."""
        return (self.most + 1) * sum(count.bit_length() for _, count, _ in self.groups())


def capacity_of(shares: Sequence[Share], replicas: Sequence[int]) -> float:
    """Return the capacity of a mix."""
    return math.fsum(share.capacity * count for share, count in zip(shares, replicas, strict=True))


def split(required: float, shares: Sequence[Share], *, expansion_percent: int) -> tuple[int, ...]:
    """Return the replicas of each target; all of its maximum if even that is not enough."""
    sizes, unit = _amounts(shares)
    needed = _missing_units(required, shares, unit)
    if needed >= sum(_spans(shares, sizes)):
        return tuple(share.max_replicas for share in shares)
    rest = _rest(needed, shares, sizes)
    if rest.needed < sum(_spans(rest.shares, rest.sizes)):
        added = _additions(rest, expansion_percent) if rest.needed > 0 else [0] * len(shares)
    else:
        added = [span if size else 0 for span, size in zip(_spans(rest.shares), rest.sizes, strict=True)]
    replicas = [share.min_replicas + more for share, more in zip(rest.shares, added, strict=True)]
    return _fit(needed, shares, sizes, replicas)


def cells_of(required: float, shares: Sequence[Share]) -> int:
    """Return the effort of a split: amounts times parts."""
    sizes, unit = _amounts(shares)
    needed = _missing_units(required, shares, unit)
    return 0 if needed >= sum(_spans(shares, sizes)) else _rest(needed, shares, sizes).cells()


def _amounts(shares: Sequence[Share]) -> tuple[list[int], int]:
    """Return the capacities as multiples of a unit, and that unit in thousandths."""
    sizes = [max(1, round(share.capacity * _FINENESS)) for share in shares]
    unit = math.gcd(*sizes)
    return [size // unit for size in sizes], unit


def _missing_units(required: float, shares: Sequence[Share], unit: int) -> int:
    available = capacity_of(shares, [share.max_replicas for share in shares])
    least = capacity_of(shares, [share.min_replicas for share in shares])
    return max(0, math.ceil((min(required, available) - least) * _FINENESS / unit - _NEARLY))


def _spans(shares: Sequence[Share], sizes: Sequence[int] | None = None) -> list[int]:
    """Return the room of each target above its minimum, in replicas or in amounts."""
    weights = [1] * len(shares) if sizes is None else sizes
    return [
        (share.max_replicas - share.min_replicas) * weight
        for share, weight in zip(shares, weights, strict=True)
    ]


def _dearness(share: Share, place: int) -> tuple[float, bool, int]:
    return share.cost / share.capacity, share.current_replicas <= share.min_replicas, place


def _rest(needed: int, shares: Sequence[Share], sizes: Sequence[int]) -> _Remainder:
    """Return the whole problem if it fits, otherwise the last amounts in the finest grain that fits."""
    rest = _Remainder(needed=needed, shares=tuple(shares), sizes=tuple(sizes))
    if rest.cells() <= MOST_CELLS:
        return rest
    order = sorted(range(len(shares)), key=lambda place: _dearness(shares[place], place))
    grain = 1
    while True:
        rest = _split_by_grain(needed, shares, sizes, order, grain)
        excess = rest.cells() / MOST_CELLS
        if excess <= 1 or grain >= max(sizes):
            return rest
        grain = min(max(sizes), max(grain + 1, math.ceil(grain * excess)))


def _split_by_grain(
    needed: int, shares: Sequence[Share], sizes: Sequence[int], order: Sequence[int], grain: int
) -> _Remainder:
    # Sizes are rounded down and the need up, so a mix that is enough in the grain is enough.
    coarse = tuple(size // grain for size in sizes)
    fewest_parts = 2 * len(shares) * max(1, needed // grain).bit_length()
    room = max(2 * max(coarse), MOST_CELLS // (2 * fewest_parts)) * grain
    replicas = [share.min_replicas for share in shares]
    for place in order:
        span = shares[place].max_replicas - replicas[place]
        counts = min(max(0, needed - room) // sizes[place], span)
        replicas[place] += counts
        needed -= counts * sizes[place]
        if counts < span:
            break
    left = tuple(replace(share, min_replicas=count) for share, count in zip(shares, replicas, strict=True))
    return _Remainder(needed=-(-needed // grain), shares=left, sizes=coarse)


def _fit(
    needed: int, shares: Sequence[Share], sizes: Sequence[int], enough: Sequence[int]
) -> tuple[int, ...]:
    """Return a mix with enough capacity and no superfluous replica; an exact one is unchanged."""
    replicas = list(enough)
    over = sum(
        (count - share.min_replicas) * size
        for share, size, count in zip(shares, sizes, replicas, strict=True)
    )
    over -= needed
    order = sorted(range(len(shares)), key=lambda place: _dearness(shares[place], place))
    # Targets below the grain count for nothing there: they fill what is left, the cheapest first. Then what
    # the rounding took too much of is returned, the dearest first.
    for place in order:
        more = min(shares[place].max_replicas - replicas[place], -(min(0, over) // sizes[place]))
        replicas[place] += more
        over += more * sizes[place]
    for place in reversed(order):
        fewer = min(replicas[place] - shares[place].min_replicas, max(0, over) // sizes[place])
        replicas[place] -= fewer
        over -= fewer * sizes[place]
    return tuple(replicas)


def _additions(rest: _Remainder, expansion_percent: int) -> list[int]:
    parts = list(_parts(rest))
    base = sum(share.cost * share.min_replicas for share in rest.shares)
    costs, counts = _cheapest(parts, rest.most)
    enough = costs[rest.needed :]
    most_cost = (base + int(enough.min())) * max(_WHOLE_PERCENT, expansion_percent) // _WHOLE_PERCENT - base
    # argmax is the first such amount: the one with the least excess.
    amount = rest.needed + int(np.argmax(enough <= min(most_cost, _NEVER - 1)))
    added = [0] * len(rest.shares)
    # Backwards: the last part that improved an amount is in its mix, and earlier ones are the rest of it.
    for part, is_taken in zip(reversed(parts), reversed(counts), strict=True):
        if is_taken[amount]:
            added[part.share] += part.replicas
            amount -= part.amount
    return added


def _parts(rest: _Remainder) -> Iterator[_Part]:
    """Yield parts that can be combined to any useful number of replicas, existing ones first."""
    # More than the sum of all places in a mix, so positions count only between mixes that start equally many.
    moved = len(rest.shares) * rest.most + 1
    for place, count, is_new in rest.groups():
        cost, change = rest.shares[place].cost, is_new * moved + place
        for some in _binary(count):
            yield _Part(place, some, some * rest.sizes[place], some * cost, some * change)


def _binary(count: int) -> Iterator[int]:
    """Yield numbers whose subset sums are exactly the numbers from 0 to `count`."""
    some = 1
    while count > 0:
        yield min(some, count)
        count -= some
        some *= 2


def _cheapest(parts: Sequence[_Part], most: int) -> tuple[NDArray[np.int64], list[NDArray[np.bool_]]]:
    """Return the minimum cost of each amount, and for each part the amounts in which it is taken last.

    A mix has at most as many replicas as amounts, so all sums are far below 2**61.
    """
    costs = np.full(most + 1, _NEVER, dtype=np.int64)
    changes = np.full(most + 1, _NEVER, dtype=np.int64)
    costs[0] = changes[0] = 0
    counts = []
    for part in parts:
        is_better = np.zeros(most + 1, dtype=np.bool_)
        here = is_better[part.amount :]
        # Sums are copies of the state before this part, so it is taken at most once (a 0-1 knapsack).
        cost = costs[: most + 1 - part.amount] + part.cost
        change = changes[: most + 1 - part.amount] + part.change
        old_cost, old_change = costs[part.amount :], changes[part.amount :]
        np.logical_or(cost < old_cost, (cost == old_cost) & (change < old_change), out=here)
        np.copyto(old_cost, cost, where=here)
        np.copyto(old_change, change, where=here)
        counts.append(is_better)
    return costs, counts
