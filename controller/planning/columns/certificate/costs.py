"""What replicas of each variant cost by themselves, in pieces: each further one no less than the one before.

Their own cost, starts and stops, slots and limits at the prices, and what the variant alone has to cover:
each is a straight line or a convex bend, and so is their sum between whole numbers of replicas.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.certificate.rows import Needs
    from controller.planning.columns.cohorts import Cohort
    from controller.planning.columns.domains import Domains
    from controller.planning.columns.resources import Resources


@dataclass(frozen=True, kw_only=True, slots=True)
class Pieces:
    """Costs of n models' variants, w each, in k straight pieces between the bounds."""

    starts: Integers
    ends: Integers
    """(n, w, k): replicas where a piece begins and ends, one after the other; some are empty."""

    slopes: Floats
    """(n, w, k): cost of each replica there, never falling."""

    base: Floats
    """(n,): cost at the lower bounds."""


def pieces(cohort: Cohort, resources: Resources, needs: Needs, rows: Floats, unit: int) -> Pieces:
    """Return the costs at prices of the shared rows; `unit` is what one of cost counts for, or 0."""
    costs = _Costs(cohort, resources, needs, rows, unit)
    bends = np.clip(costs.bends(), needs.lower[:, :, None], needs.upper[:, :, None])
    bends.sort(axis=2)
    values = costs.of(bends)
    starts, ends = bends[:, :, :-1], bends[:, :, 1:]
    used = np.flatnonzero((ends > starts).any(axis=(0, 1)))
    used = used if len(used) else np.zeros(1, dtype=np.int64)
    rise = np.diff(values, axis=2) / np.maximum(ends - starts, 1)
    return Pieces(
        starts=starts[:, :, used],
        ends=ends[:, :, used],
        slopes=rise[:, :, used],
        base=values[:, :, 0].sum(axis=1) + needs.constant,
    )


class _Costs:
    """The cost of any number of replicas of each variant."""

    def __init__(self, cohort: Cohort, resources: Resources, needs: Needs, rows: Floats, unit: int) -> None:
        slots, shared = len(resources.slots), len(resources.capacity)
        self._cohort = cohort
        self._needs = needs
        self._unit = unit
        self._per_unit = _cheapest_places(cohort, resources, rows[:slots])
        self._settled = _settled(cohort)
        limits = resources.limit_amounts[:, cohort.variants].astype(np.float64)
        self._per_replica = np.tensordot(rows[slots:shared], limits, axes=1) + unit * cohort.cost

    def bends(self) -> Integers:
        """Return where the cost may bend, (n, w, bends); the order says nothing."""
        cohort, needs = self._cohort, self._needs
        bends = [needs.lower, needs.upper, *_around(self._settled, cohort.units)]
        if self._unit:
            bends.append(cohort.current)
        bends += [cover.counts_to for cover in (*needs.alone, needs.main, needs.second)]
        for cover in needs.alone:
            bends += _around(cover.required[:, None], cover.amounts)
        return np.stack(np.broadcast_arrays(*bends), axis=2)

    def of(self, counts: Integers) -> Floats:
        """Return what so many replicas cost, both (n, w, any)."""
        cohort = self._cohort
        asked = np.maximum(counts * cohort.units[:, :, None] - self._settled[:, :, None], 0)
        costs: Floats = self._per_unit[:, :, None] * asked + self._per_replica[:, :, None] * counts
        if self._unit:
            more = counts - cohort.current[:, :, None]
            moved = np.maximum(more, 0) * cohort.start_price[:, :, None]
            moved += np.maximum(-more, 0) * cohort.stop_price[:, :, None]
            costs += self._unit * moved
        for cover in self._needs.alone:
            provided = cover.amounts[:, :, None] * np.minimum(counts, cover.counts_to[:, :, None])
            missing = np.maximum(cover.required[:, None, None] - provided, 0)
            costs += np.where(cover.amounts > 0, cover.price[:, None], 0.0)[:, :, None] * missing
        return costs


def _around(numerator: Integers, denominator: Integers) -> tuple[Integers, Integers]:
    """Return the whole numbers on both sides of a quotient."""
    below = numerator // np.maximum(denominator, 1)
    return below, below + 1


def _cheapest_places(cohort: Cohort, resources: Resources, slot_prices: Floats) -> Floats:
    """Return the least that one in each variant's class pays for its place, (n, w)."""
    if not resources.allowed.size:
        return np.zeros(cohort.shape)
    price = np.where(resources.allowed, resources.uses @ slot_prices, np.inf).min(axis=1)
    of_class = np.append(np.where(np.isfinite(price), price, 0.0), 0.0)[cohort.place_class]
    return np.stack(
        [of_class[:, np.array(cohort.origin) == v].min(axis=1) for v in range(cohort.shape[1])], axis=1
    )


def _settled(cohort: Cohort) -> Integers:
    """Return how many units of bound replicas are not counted against the most slots at most, (n, w)."""
    settled = cohort.settled.copy()
    for v, domains in enumerate(cohort.domains):
        if domains is not None:
            settled[:, v] = _uncounted(domains, cohort.units[:, v], cohort.bound[:, v])
    return settled


def _uncounted(domains: Domains, units: Integers, bound: Integers) -> Integers:
    """Return the same of a variant that spreads over domains, (n,), for any number that stays."""
    stay = np.minimum(np.arange(domains.counted.shape[1])[None, :], bound[:, None])
    most: Integers = (stay * units[:, None] - domains.counted.sum(axis=2)).max(axis=1, initial=0)
    return most
