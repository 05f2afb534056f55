"""Where the pods of a mix go that are spread over domains: each way is a column of its own.

New pods fill the domains with the fewest pods first, as the scheduler makes them. What is left then may go to
any of those that are equally full. Of models with few mixes every way to begin is a column; of others there
is one, which begins elsewhere for each model, and one at the prices. If more than one may be ahead, there are
also ways that make the most of it.
"""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterator

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort
    from controller.planning.columns.domains import Domains

_NEVER = 10**12
"""More pods than there are anywhere."""


def laid_out(
    cohort: Cohort, mixes: Integers, place_price: Floats | None = None
) -> tuple[Integers, Floats, Integers | None]:
    """Return mixes (n, j, w) in some ways to spread them, what each asks, and its new pods, at each place.

    Given the price of a pod at each place, (n, places), one way begins with the cheapest domains: where none
    may be ahead of the others by more than one it is the cheapest there is. Without anything to spread there
    is one way for each mix, and the new pods are None.
    """
    if not any(cohort.domains):
        counted = mixes * cohort.units[:, None, :] - cohort.settled[:, None, :]
        return mixes, np.maximum(counted, 0).astype(np.float64), None
    is_lopsided = any(found is not None and bool((found.max_skew > 1).any()) for found in cohort.domains)
    orders = list(_orders(cohort))
    if place_price is not None:
        orders.append(np.argsort(place_price, axis=1, kind="stable"))
    ways = [
        _way(cohort, mixes, order=order, is_lopsided=lopsided)
        for lopsided in ((False, True) if is_lopsided else (False,))
        for order in orders
    ]
    asked: Floats = np.concatenate([way[0] for way in ways], axis=1).astype(np.float64)
    new: Integers = np.concatenate([way[1] for way in ways], axis=1)
    return np.tile(mixes, (1, len(ways), 1)), asked, new


def _orders(cohort: Cohort) -> Iterator[Integers]:
    """Yield in which orders each model's places may come, (n, places): all that matter, or just one.

    Each model begins elsewhere: with one way for each, all domains are used all the same.
    """
    model = np.arange(len(cohort.variants))[:, None]
    counts = [found.lying.shape[1] if found else 1 for found in cohort.domains]
    starts = np.cumsum([0, *counts[:-1]]).tolist()
    for turns in product(*map(range, counts)) if cohort.is_enumerable else ((0,) * len(counts),):
        parts = zip(starts, counts, turns, strict=True)
        yield np.concatenate(
            [start + (np.arange(count)[None, :] + turn + model) % count for start, count, turn in parts],
            axis=1,
        )


def _way(cohort: Cohort, mixes: Integers, *, order: Integers, is_lopsided: bool) -> tuple[Integers, Integers]:
    """Return what one way asks, and its new pods, at each place: both (n, j, places).

    The order (n, places) says which of equally full domains come first.
    """
    rank = np.argsort(order, axis=1)
    asked, new, place = [], [], 0
    for position, domains in enumerate(cohort.domains):
        mix, units = mixes[:, :, position], cohort.units[:, position, None]
        more = np.maximum(mix - cohort.bound[:, position, None], 0) * units
        if domains is None:
            asked.append(np.maximum(mix * units - cohort.settled[:, position, None], 0)[:, :, None])
            new.append(more[:, :, None])
            place += 1
            continue
        skew = domains.max_skew if is_lopsided else np.ones_like(domains.max_skew)
        own = slice(place, place + domains.lying.shape[1])
        place = own.stop
        open_lying, most = _open(domains, cohort.closed[:, own])
        spread = _spread(open_lying, more, skew, most, np.argsort(rank[:, own], axis=1))
        stay = np.minimum(mix, domains.counted.shape[1] - 1)
        asked.append(domains.counted[np.arange(len(mix))[:, None], stay] + spread)
        new.append(spread)
    return np.concatenate(asked, axis=2), np.concatenate(new, axis=2)


def _open(domains: Domains, closed: Booleans) -> tuple[Integers, Integers]:
    """Return the pods that lie in each domain, (n, domains), and the most in one that gets new ones, (n,).

    Where no new pod can go there lie as many as are never reached; what lies there holds the others down.
    """
    fewest = np.where(closed, domains.lying, _NEVER).min(axis=1)
    lying: Integers = np.where(closed & ~closed.all(axis=1, keepdims=True), _NEVER, domains.lying)
    return lying, np.where(fewest < _NEVER, fewest + domains.max_skew, _NEVER)


def _spread(lying: Integers, more: Integers, skew: Integers, most: Integers, order: Integers) -> Integers:
    """Return the new pods in each domain, (n, j, domains), given those that lie there (n, domains).

    `more` pods (n, j) fill up to a level that is the highest one or `skew` below what they reach at most; the
    rest goes to one domain after the other, in their order (n, domains). What exceeds the `most` of every
    domain goes to the fullest, which is one that is closed, if any is.
    """
    lowest = np.sort(lying, axis=1).cumsum(axis=1)
    ranks = np.arange(1, lying.shape[1] + 1)
    # To fill all domains to a level takes as much as the fullest set of them that it exceeds.
    reached = ((more[:, :, None] + lowest[:, None, :]) // ranks).min(axis=2)
    is_even = np.maximum(reached[:, :, None] - lying[:, None, :], 0).sum(axis=2) == more
    top = np.where(is_even, reached, reached + 1)
    level = np.maximum(top - skew[:, None], lying.min(axis=1)[:, None])
    level = np.minimum(np.minimum(level, reached), most[:, None])
    filled = np.maximum(level[:, :, None] - lying[:, None, :], 0)
    top = np.minimum(level + skew[:, None], most[:, None])
    room = np.maximum(top[:, :, None] - lying[:, None, :] - filled, 0)
    in_order = np.broadcast_to(order[:, None, :], room.shape)
    room = np.take_along_axis(room, in_order, axis=2)
    left = more - filled.sum(axis=2)
    given = np.clip(left[:, :, None] - (np.cumsum(room, axis=2) - room), 0, room)
    spread: Integers = filled
    np.put_along_axis(spread, in_order, np.take_along_axis(filled, in_order, axis=2) + given, axis=2)
    model = np.arange(len(lying))
    spread[model, :, lying.argmax(axis=1)] += (more - spread.sum(axis=2))[model]
    return spread
