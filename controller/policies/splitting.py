"""Split a required capacity among different targets, by an integer program with bounded effort.

Of all mixes within the targets' bounds that provide the required capacity, those are admissible whose cost is
at most `expansion_percent` of the minimum. Among these the one with the least excess capacity is chosen; then
the least cost; then the fewest replicas to start or stop; then the order of targets.

Capacities are multiples of their greatest common divisor, to a thousandth. A bounded knapsack finds the
minimum cost of each amount of capacity, part by part. Amounts times parts never exceed `MOST_CELLS`:

- The result is exact where that suffices: for targets of equal capacity in any number, and for a few
  different ones with several hundred replicas whose capacities have a common divisor of a tenth or more.
  Costs are always exact.
- Of a very large requirement, all but the last amounts are taken from the targets with the most capacity per
  cost: still exact for equal targets, and nearly so for different ones.
- If many targets have capacities with a tiny common divisor, the last amounts are taken from them, too. Such
  a mix may have more cost or capacity than the best one.

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
_NEARLY: Final = 1e-6
_NEVER: Final = 2**61
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

    @property
    def span(self) -> int:
        """The replicas between its bounds."""
        return self.max_replicas - self.min_replicas


class _Part(NamedTuple):
    """Some replicas of one target that are taken together or not at all."""

    share: int
    replicas: int
    amount: int
    cost: int
    change: int
    """Tie-breaker for equal cost: replicas started, then position."""


class _Problem(NamedTuple):
    """The amount needed beyond the minima of the targets, and the amount that a replica of each has."""

    needed: int
    shares: Sequence[Share]
    sizes: Sequence[int]

    @property
    def most(self) -> int:
        """The largest useful amount."""
        return self.needed + max(self.sizes) - 1

    def groups(self) -> Iterator[tuple[int, int, bool]]:
        """Yield (place, count, is_new) of useful replicas of each target: existing ones, then new ones."""
        for place, (share, size) in enumerate(zip(self.shares, self.sizes, strict=True)):
            count = min(share.span, self.most // size)
            kept = min(count, max(0, share.current_replicas - share.min_replicas))
            yield place, kept, False
            yield place, count - kept, True

    def cells(self) -> int:
        """Return the number of amounts times parts."""
        return (self.most + 1) * sum(count.bit_length() for _, count, _ in self.groups())

    def cheapest_first(self) -> list[int]:
        """Return the positions of the targets by cost per capacity, those with running replicas first."""

        def dearness(place: int) -> tuple[float, bool]:
            share = self.shares[place]
            return share.cost / share.capacity, share.current_replicas <= share.min_replicas

        return sorted(range(len(self.shares)), key=dearness)


def capacity_of(shares: Sequence[Share], replicas: Sequence[int]) -> float:
    """Return the capacity of a mix."""
    return math.fsum(share.capacity * count for share, count in zip(shares, replicas, strict=True))


def split(required: float, shares: Sequence[Share], *, expansion_percent: int) -> tuple[int, ...]:
    """Return the replicas of each target; all of its maximum if even that is not enough."""
    sizes = [max(1, round(share.capacity * _FINENESS)) for share in shares]
    unit = math.gcd(*sizes)
    sizes = [size // unit for size in sizes]
    available = capacity_of(shares, [share.max_replicas for share in shares])
    least = capacity_of(shares, [share.min_replicas for share in shares])
    needed = max(0, math.ceil((min(required, available) - least) * _FINENESS / unit - _NEARLY))
    if needed >= sum(share.span * size for share, size in zip(shares, sizes, strict=True)):
        return tuple(share.max_replicas for share in shares)
    problem = _Problem(needed, shares, sizes)
    rest = problem if problem.cells() <= MOST_CELLS else _last_amounts(problem)
    added = _additions(rest, expansion_percent) if rest.needed and rest.cells() <= MOST_CELLS else None
    replicas = [
        share.min_replicas + more for share, more in zip(rest.shares, added or [0] * len(shares), strict=True)
    ]
    return _fit(problem, replicas)


def _last_amounts(problem: _Problem) -> _Problem:
    """Return what is left of a problem after replicas of the cheapest targets were taken."""
    needed, shares, sizes = problem
    fewest_parts = 2 * len(shares) * max(1, needed).bit_length()
    room = max(2 * max(sizes), MOST_CELLS // (2 * fewest_parts))
    left = list(shares)
    for place in problem.cheapest_first():
        share = shares[place]
        taken = min(max(0, needed - room) // sizes[place], share.span)
        left[place] = replace(share, min_replicas=share.min_replicas + taken)
        needed -= taken * sizes[place]
        if taken < share.span:
            break
    return _Problem(needed, left, sizes)


def _fit(problem: _Problem, replicas: list[int]) -> tuple[int, ...]:
    """Return a mix with enough capacity and no superfluous replica; an exact one is unchanged."""
    needed, shares, sizes = problem
    over = -needed
    for share, size, count in zip(shares, sizes, replicas, strict=True):
        over += (count - share.min_replicas) * size
    order = problem.cheapest_first()
    for place in order:
        more = min(shares[place].max_replicas - replicas[place], -(min(0, over) // sizes[place]))
        replicas[place] += more
        over += more * sizes[place]
    for place in reversed(order):
        fewer = min(replicas[place] - shares[place].min_replicas, max(0, over) // sizes[place])
        replicas[place] -= fewer
        over -= fewer * sizes[place]
    return tuple(replicas)


def _additions(problem: _Problem, expansion_percent: int) -> list[int]:
    """Return the replicas of the best mix beyond the minima."""
    parts = list(_parts(problem))
    base = sum(share.cost * share.min_replicas for share in problem.shares)
    costs, taken = _cheapest(parts, problem.most)
    enough = costs[problem.needed :]
    most_cost = (base + int(enough.min())) * max(_WHOLE_PERCENT, expansion_percent) // _WHOLE_PERCENT - base
    amount = problem.needed + int(np.argmax(enough <= min(most_cost, _NEVER - 1)))
    added = [0] * len(problem.shares)
    for part, is_taken in zip(reversed(parts), reversed(taken), strict=True):
        if is_taken[amount]:
            added[part.share] += part.replicas
            amount -= part.amount
    return added


def _parts(problem: _Problem) -> Iterator[_Part]:
    """Yield parts that can be combined to any useful number of replicas, existing ones first."""
    moved = len(problem.shares) * problem.most + 1
    for place, count, is_new in problem.groups():
        cost, change, left, some = problem.shares[place].cost, 2 * is_new * moved + place, count, 1
        while left > 0:  # the subset sums of 1, 2, 4... and a rest are exactly the numbers from 0 to `count`
            number = min(some, left)
            yield _Part(place, number, number * problem.sizes[place], number * cost, number * change)
            left -= number
            some *= 2


def _cheapest(parts: Sequence[_Part], most: int) -> tuple[NDArray[np.int64], list[NDArray[np.bool_]]]:
    """Return the minimum cost of each amount, and for each part the amounts in which it is taken last.

    A mix has at most as many replicas as amounts, so all sums are far below 2**61.
    """
    costs = np.full(most + 1, _NEVER, dtype=np.int64)
    changes = np.full(most + 1, _NEVER, dtype=np.int64)
    costs[0] = changes[0] = 0
    taken = []
    for part in parts:
        is_better = np.zeros(most + 1, dtype=np.bool_)
        here = is_better[part.amount :]
        cost = costs[: most + 1 - part.amount] + part.cost
        change = changes[: most + 1 - part.amount] + part.change
        old_cost, old_change = costs[part.amount :], changes[part.amount :]
        np.logical_or(cost < old_cost, (cost == old_cost) & (change < old_change), out=here)
        np.copyto(old_cost, cost, where=here)
        np.copyto(old_change, change, where=here)
        taken.append(is_better)
    return costs, taken
