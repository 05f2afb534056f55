"""Columns: replica mixes with everything about them that does not depend on other models.

A column is one mix of one model. Whatever a model alone decides (shortfalls, prices of starts and stops,
replicas that are ready now) is a number in its columns, so that only what models share is left to be
solved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.spreading import laid_out
from controller.planning.problem import PER_MILLE, Stage

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort


_MOST_KEYS = 2**62
"""Where there are fewer mixes, each has a number of its own."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Pool:
    """The columns of a cohort: n models, j columns of each, w variants in each."""

    cohort: Cohort
    mixes: Integers
    """(n, j, w)."""

    asked: Floats
    """(n, j, places): what counts against the most slots."""

    new: Integers | None
    """(n, j, places): new pods at each place; None where nothing is spread, and the mix says it."""

    shortfalls: Integers
    """(stages, n, j): weighted per mille."""

    cost: Integers
    """(n, j): of the replicas, their starts and stops."""

    disturbed: Integers
    """(n, j): accelerators that start or stop, at least one for each replica."""

    repeated: Booleans
    """(n, j): whether an earlier column of the model has the same mix at the same places."""

    homeless: Booleans
    """(n, j): whether no node would take some of the new replicas."""

    least: Integers
    """(stages, n): of each model at its best, the first stage first, among columns that are not homeless."""

    @property
    def unserved(self) -> Integers:
        """(stages, n): the shortfalls of each model without any replica."""
        nothing = np.zeros((len(self.cost), 1, self.mixes.shape[2]), dtype=np.int64)
        missing: Integers = _shortfalls(self.cohort, nothing)[:, :, 0]
        return missing

    def best_alone(self) -> Integers:
        """Return the column that is best for each model alone, (n,): least shortfall, cost, disruption."""
        barred = self.repeated
        for values in (*self.shortfalls, self.cost):
            allowed = np.where(barred, np.iinfo(np.int64).max, values)
            barred = barred | (values > allowed.min(axis=1, keepdims=True))
        best: Integers = np.where(barred, np.iinfo(np.int64).max, self.disturbed).argmin(axis=1)
        return best

    def only(self, columns: Integers) -> Pool:
        """Return the pool with some columns of each model, (n, fewer)."""
        models = np.arange(len(columns))[:, None]
        return Pool(
            cohort=self.cohort,
            mixes=self.mixes[models, columns],
            asked=self.asked[models, columns],
            new=None if self.new is None else self.new[models, columns],
            shortfalls=self.shortfalls[:, models, columns],
            cost=self.cost[models, columns],
            disturbed=self.disturbed[models, columns],
            repeated=self.repeated[models, columns],
            homeless=self.homeless[models, columns],
            least=self.least,
        )

    def joined(self, more: Pool) -> Pool:
        """Return the pool with the columns of another one of the same cohort."""
        together = np.concatenate([self.mixes, more.mixes], axis=1)
        new = None if self.new is None or more.new is None else np.concatenate([self.new, more.new], axis=1)
        joined = Pool(
            cohort=self.cohort,
            mixes=together,
            asked=np.concatenate([self.asked, more.asked], axis=1),
            new=new,
            shortfalls=np.concatenate([self.shortfalls, more.shortfalls], axis=2),
            cost=np.concatenate([self.cost, more.cost], axis=1),
            disturbed=np.concatenate([self.disturbed, more.disturbed], axis=1),
            repeated=repeated_in(together if new is None else np.concatenate([together, new], axis=2)),
            homeless=np.concatenate([self.homeless, more.homeless], axis=1),
            least=self.least,
        )
        return joined.compact()

    def compact(self) -> Pool:
        """Return the pool with each model's repeated columns last, and as few of them as its shape allows.

        Columns that are not repeated keep their order, and their numbers if all before them are of that kind.
        """
        kept = (~self.repeated).sum(axis=1)
        width = int(kept.max(initial=0))
        order = np.argsort(self.repeated, axis=1, kind="stable")[:, :width]
        return replace(self.only(order), repeated=np.arange(width) >= kept[:, None])


def pool_of(cohort: Cohort, mixes: Integers, place_price: Floats | None = None) -> Pool:
    """Return the columns for mixes, (n, j, w): one each, or some ways to spread it, see `laid_out`."""
    mixes, asked, new = laid_out(cohort, mixes, place_price)
    shortfalls = _shortfalls(cohort, mixes)
    homeless: Booleans = np.any((mixes > cohort.bound[:, None]) & (cohort.homeless[:, None] > 0), axis=2)
    if new is not None:
        homeless |= np.any((new > 0) & cohort.closed[:, None], axis=2)
    return Pool(
        cohort=cohort,
        mixes=mixes,
        asked=asked,
        new=new,
        shortfalls=shortfalls,
        cost=_cost(cohort, mixes),
        disturbed=_weighted(np.abs(mixes - cohort.current[:, None, :]), np.maximum(cohort.accelerators, 1)),
        repeated=repeated_in(mixes if new is None else np.concatenate([mixes, new], axis=2)),
        homeless=homeless,
        least=_least(shortfalls, homeless),
    )


def repeated_in(mixes: Integers) -> Booleans:
    """Return which mixes of each model stand further to the left already, (n, j)."""
    repeated = np.zeros(mixes.shape[:2], dtype=np.bool_)
    choices = mixes.max(axis=(0, 1), initial=0) + 1
    if math.prod(choices.tolist()) < _MOST_KEYS:
        keys = mixes @ (np.cumprod(choices) // choices)
        order = np.argsort(keys, axis=1, kind="stable")
        ordered = np.take_along_axis(keys, order, axis=1)
        same = ordered[:, 1:] == ordered[:, :-1]
    else:
        order = np.lexsort([mixes[:, :, variant] for variant in range(mixes.shape[2])], axis=1)
        ordered = np.take_along_axis(mixes, order[:, :, None], axis=1)
        same = (ordered[:, 1:] == ordered[:, :-1]).all(axis=2)
    np.put_along_axis(repeated, order[:, 1:], same, axis=1)
    return repeated


def _shortfalls(cohort: Cohort, mixes: Integers) -> Integers:
    """Return what each mix leaves uncovered, by stage; see `problem.CoverRow.shortfall`."""
    total = np.zeros((len(Stage), *mixes.shape[:2]), dtype=np.int64)
    ready = np.minimum(mixes, cohort.ready[:, None, :])
    for row in cohort.requirements:
        counted = ready if row.stage is Stage.CONTINUITY else mixes
        provided = np.matmul(counted, row.amounts[:, :, None])[:, :, 0]
        required = row.requirement[:, None]
        missing = np.maximum(required - provided, 0)
        total[row.stage] += row.weight[:, None] * -(-PER_MILLE * missing // np.maximum(required, 1))
    return total


def _least(shortfalls: Integers, homeless: Booleans) -> Integers:
    """Return the lexicographic minimum over the columns, (stages, n)."""
    least = np.zeros(shortfalls.shape[:2], dtype=np.int64)
    barred = homeless
    for stage, values in enumerate(shortfalls):
        least[stage] = np.where(barred, np.iinfo(np.int64).max, values).min(axis=1)
        barred = barred | (values > least[stage][:, None])
    return least


def _cost(cohort: Cohort, mixes: Integers) -> Integers:
    moved = mixes - cohort.current[:, None, :]
    return (
        _weighted(mixes, cohort.cost)
        + _weighted(np.maximum(moved, 0), cohort.start_price)
        + _weighted(np.maximum(-moved, 0), cohort.stop_price)
    )


def _weighted(mixes: Integers, weights: Integers) -> Integers:
    """Return the weighted sum over the variants, (n, j)."""
    total: Integers = np.matmul(mixes, weights[:, :, None])[:, :, 0]
    return total
