"""What each model of a cohort must cover in one phase, in a form that a bound over all mixes can do with.

A requirement of one variant alone is a matter of that variant: a lower bound, or a price of being below it.
Of the others one is kept as it is, one that any single replica meets is a case to distinguish, and one that
an earlier level insists on rules mixes out. Whatever else there is only forbids mixes or makes them dearer,
so that leaving it out keeps a bound valid.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import PER_MILLE, UNLIMITED_REPLICAS, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort, Levels, Requirements
    from controller.planning.columns.pool import Pool

HARD = np.inf
"""Price of a shortfall that an earlier level rules out."""

_PREFERENCE = (Stage.DEMAND, Stage.MINIMUM, Stage.CONTINUITY)
"""Of which stage a requirement is kept where there are several and none is what the phase is about."""


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


@dataclass(frozen=True, kw_only=True, slots=True)
class Needs:
    """All that is asked of the models of a cohort in a phase."""

    lower: Integers
    """(n, w): without so many replicas a mix is ruled out."""

    upper: Integers
    """(n, w): as many as could ever find room."""

    hard: tuple[Cover, ...]
    """All that an earlier level insists on."""

    alone: tuple[Cover, ...]
    """Of one variant of each model, at a price."""

    main: Cover
    any_one: Cover
    """What any replica of several variants meets; not where it is `main`, or follows from it."""

    second: Cover
    """What else an earlier level insists on, and several variants provide."""

    constant: Floats
    """(n,): price of what no mix provides."""


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


def needs_of(cohort: Cohort, level: int, caps: Mapping[int, float]) -> Needs:
    """Return what is asked of the models of a cohort at a level, given the prices of capped earlier ones."""
    lower, upper = cohort.lower, most_useful(cohort)
    nothing = _nothing(cohort)
    shared, alone, hard, constant = [], [], [], np.zeros(len(upper))
    for row in cohort.requirements:
        cover, helping = _cover(cohort, row, level, caps), (row.amounts > 0).sum(axis=1)
        is_hard = np.isinf(cover.price)
        hard.append(cover.where(is_hard, nothing))
        lost = (helping == 0) & (cover.required > 0)
        constant[lost] += cover.price[lost] * cover.required[lost]
        shared.append((row.stage, cover.where(helping > 1, nothing)))
        needed = np.where((is_hard & (helping == 1))[:, None], _replicas(cover), 0)
        lower = np.maximum(lower, needed)
        alone.append((row.stage, cover.where(~is_hard & (helping == 1), nothing)))
    main = _main(cohort, [*shared, *alone], level)
    lower = np.minimum(lower, upper)
    any_one = _any_one([cover for _, cover in shared], main, lower)
    return Needs(
        lower=lower,
        upper=upper,
        hard=tuple(cover for cover in hard if cover.required.any()),
        alone=tuple(_besides([cover for _, cover in alone], main)),
        main=main,
        any_one=any_one,
        second=_second([cover for _, cover in reversed(shared)], main, any_one),
        constant=constant,
    )


def _missing(cohort: Cohort, row: Requirements) -> Integers:
    """Return the per mille of a requirement that is missing with all useful replicas, (n,)."""
    provided = (row.amounts * np.minimum(most_useful(cohort), _counts_to(cohort, row))).sum(axis=1)
    missing = np.maximum(row.requirement - provided, 0)
    per_mille: Integers = -(-PER_MILLE * missing // np.maximum(row.requirement, 1))
    return per_mille


def _counts_to(cohort: Cohort, row: Requirements) -> Integers:
    return cohort.ready if row.stage is Stage.CONTINUITY else np.full(cohort.shape, UNLIMITED_REPLICAS)


def _nothing(cohort: Cohort) -> Cover:
    n, w = cohort.shape
    none = np.zeros((n, w), dtype=np.int64)
    return Cover(
        required=np.zeros(n, dtype=np.int64),
        amounts=none,
        counts_to=np.full_like(none, UNLIMITED_REPLICAS),
        price=np.zeros(n),
    )


def _cover(cohort: Cohort, row: Requirements, level: int, caps: Mapping[int, float]) -> Cover:
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


def _replicas(cover: Cover) -> Integers:
    """Return the replicas without which a requirement of one variant is not met, (n, w)."""
    helps = (cover.amounts > 0) & (cover.required > 0)[:, None]
    needed: Integers = np.where(helps, -(-cover.required[:, None] // np.maximum(cover.amounts, 1)), 0)
    return needed


def _main(cohort: Cohort, shared: Sequence[tuple[Stage, Cover]], level: int) -> Cover:
    """Return the first requirement of each model: of the phase's own level, or by preference."""
    main = _nothing(cohort)
    for cover, counts in _ranked(cohort, shared, level):
        main = main.where((main.required > 0) | ~counts, cover)
    return main


def _ranked(
    cohort: Cohort, shared: Sequence[tuple[Stage, Cover]], level: int
) -> Iterator[tuple[Cover, Booleans]]:
    """Yield requirements in order, each with the models for which its turn is now."""
    for stage, cover in shared:
        yield cover, cohort.levels[:, stage] == level
    for preferred in _PREFERENCE:
        for stage, cover in shared:
            if stage is preferred:
                yield cover, np.ones(len(cover.required), dtype=np.bool_)


def _besides(alone: Sequence[Cover], main: Cover) -> Iterator[Cover]:
    """Yield requirements of one variant without those that are the main one."""
    is_found = np.zeros(len(main.required), dtype=np.bool_)
    for cover in alone:
        is_main = _is_same(cover, main) & ~is_found
        is_found |= is_main
        rest = replace(cover, required=np.where(is_main, 0, cover.required))
        if rest.required.any():
            yield rest


def _is_same(cover: Cover, main: Cover) -> Booleans:
    same: Booleans = (cover.amounts == main.amounts).all(axis=1) & (cover.required == main.required)
    return same


def _second(shared: Sequence[Cover], main: Cover, any_one: Cover) -> Cover:
    """Return one more requirement of each model that an earlier level insists on, if there is any."""
    found = replace(main, required=np.zeros_like(main.required))
    for cover in shared:
        counts = np.isinf(cover.price) & ~_is_same(cover, main) & ~_is_same(cover, any_one)
        found = cover.where(counts & (found.required == 0), found)
    return found


def _any_one(shared: Sequence[Cover], main: Cover, lower: Integers) -> Cover:
    """Return a requirement of each model that any one replica meets; none where it is met anyway."""
    none = replace(main, required=np.zeros_like(main.required))
    found = none
    for cover in shared:
        helps = cover.amounts > 0
        is_met_by_one = (cover.amounts >= cover.required[:, None]) & (cover.counts_to > lower)
        counts = (cover.required > 0) & (is_met_by_one | ~helps).all(axis=1)
        counts &= ((lower > 0) & helps).sum(axis=1) == 0
        follows = np.isinf(main.price) & (main.required > 0) & (helps | (main.amounts == 0)).all(axis=1)
        found = cover.where(counts & ~follows & ~_is_same(cover, main) & (found.required == 0), found)
    return found
