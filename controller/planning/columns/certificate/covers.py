"""One requirement of each model of a cohort, as it looks at one level of the lexicographic order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import PER_MILLE, UNLIMITED_REPLICAS, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort, Levels, Requirements
    from controller.planning.columns.pool import Pool

HARD = np.inf
"""Price of a shortfall that an earlier level rules out."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Cover:
    """At most one requirement of each model: replicas provide amounts, and what is missing has a price."""

    required: Integers
    """(n,): 0 where nothing is asked for."""

    amounts: Integers
    """(n, w): per replica."""

    counts_to: Integers
    """(n, w): replicas beyond this provide nothing."""

    price: Floats
    """(n,): of each one that is missing, or HARD."""

    def lacking(self, mixes: Integers) -> Integers:
        """Return how much mixes, (n, w), do not provide, (n,): less than nothing if they provide more."""
        provided: Integers = (self.amounts * np.minimum(mixes, self.counts_to)).sum(axis=1)
        return self.required - provided

    def where(self, chosen: Booleans, other: Cover) -> Cover:
        """Return the requirements of the chosen models, (n,), and another's of the rest."""
        return Cover(
            required=np.where(chosen, self.required, other.required),
            amounts=np.where(chosen[:, None], self.amounts, other.amounts),
            counts_to=np.where(chosen[:, None], self.counts_to, other.counts_to),
            price=np.where(chosen, self.price, other.price),
        )

    def replicas(self) -> Integers:
        """Return the replicas without which a requirement of one variant is not met, (n, w)."""
        helps = (self.amounts > 0) & (self.required > 0)[:, None]
        needed: Integers = np.where(helps, -(-self.required[:, None] // np.maximum(self.amounts, 1)), 0)
        return needed

    def is_same(self, other: Cover) -> Booleans:
        """Return which models have the same requirement in another, (n,)."""
        provides = (self.amounts == other.amounts) & (self.counts_to == other.counts_to)
        same: Booleans = provides.all(axis=1) & (self.required == other.required)
        return same


def most_useful(cohort: Cohort) -> Integers:
    """Return as many replicas of each variant as could ever find room, (n, w)."""
    homes = np.where(cohort.homeless > 0, np.minimum(cohort.bound, cohort.useful), cohort.useful)
    useful: Integers = np.maximum(homes, cohort.lower)
    return useful


def least_of_all(pools: Sequence[Pool], levels: Levels) -> list[int]:
    """Return what each level comes to at least, whatever mixes there are: more replicas never lack more."""
    least = [0] * len(levels)
    for pool in pools:
        for row in pool.cohort.requirements:
            short = row.weight * _missing(pool.cohort, row)
            for level, missing in zip(pool.cohort.levels[:, row.stage].tolist(), short.tolist(), strict=True):
                least[level] += missing if level >= 0 else 0
    return least


def _missing(cohort: Cohort, row: Requirements) -> Integers:
    """Return the per mille of a requirement that is missing with all useful replicas, (n,)."""
    provided = (row.amounts * np.minimum(most_useful(cohort), _counts_to(cohort, row))).sum(axis=1)
    missing = np.maximum(row.requirement - provided, 0)
    per_mille: Integers = -(-PER_MILLE * missing // np.maximum(row.requirement, 1))
    return per_mille


def _counts_to(cohort: Cohort, row: Requirements) -> Integers:
    return cohort.ready if row.stage is Stage.CONTINUITY else np.full(cohort.shape, UNLIMITED_REPLICAS)


def no_cover(cohort: Cohort) -> Cover:
    """Return what asks for nothing."""
    n, w = cohort.shape
    none = np.zeros((n, w), dtype=np.int64)
    return Cover(
        required=np.zeros(n, dtype=np.int64),
        amounts=none,
        counts_to=np.full_like(none, UNLIMITED_REPLICAS),
        price=np.zeros(n),
    )


def cover_of(cohort: Cohort, row: Requirements, level: int, caps: Mapping[int, float]) -> Cover:
    """Return a row as it looks at a level: priced, kept at its least, or of no account."""
    counts_at = cohort.levels[:, row.stage]
    price = np.where(counts_at == level, 1.0, 0.0)
    for capped, cap_price in caps.items():
        price = np.where(counts_at == capped, cap_price, price)
    is_hard = (counts_at >= 0) & (counts_at < level) & ~np.isin(counts_at, list(caps))
    # A per mille that may be missing rounds up: so much less is enough.
    enough = row.requirement - row.requirement * _missing(cohort, row) // PER_MILLE
    weighted = price * row.weight * PER_MILLE / np.maximum(row.requirement, 1)
    counts = (row.weight > 0) & (is_hard | (price > 0))
    return Cover(
        required=np.where(counts, np.where(is_hard, enough, row.requirement), 0),
        amounts=row.amounts,
        counts_to=_counts_to(cohort, row),
        price=np.where(is_hard & counts, HARD, np.where(counts, weighted, 0.0)),
    )
