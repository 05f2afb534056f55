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

from controller.planning.columns.certificate.covers import cover_of, most_useful, no_cover
from controller.planning.problem import Stage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.certificate.covers import Cover
    from controller.planning.columns.cohorts import Cohort

_PREFERENCE = (Stage.DEMAND, Stage.MINIMUM, Stage.CONTINUITY)
"""Of which stage a requirement is kept where there are several and none is what the phase is about."""


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


def needs_of(cohort: Cohort, level: int, caps: Mapping[int, float]) -> Needs:
    """Return what is asked of the models of a cohort at a level, given the prices of capped earlier ones."""
    lower, upper = cohort.lower, most_useful(cohort)
    nothing = no_cover(cohort)
    shared, alone, hard, constant = [], [], [], np.zeros(len(upper))
    for row in cohort.requirements:
        cover, helping = cover_of(cohort, row, level, caps), (row.amounts > 0).sum(axis=1)
        is_hard = np.isinf(cover.price)
        hard.append(cover.where(is_hard, nothing))
        lost = (helping == 0) & (cover.required > 0)
        constant[lost] += cover.price[lost] * cover.required[lost]
        shared.append((row.stage, cover.where(helping > 1, nothing)))
        needed = np.where((is_hard & (helping == 1))[:, None], cover.replicas(), 0)
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


def _main(cohort: Cohort, shared: Sequence[tuple[Stage, Cover]], level: int) -> Cover:
    """Return the first requirement of each model: of the phase's own level, or by preference."""
    main = no_cover(cohort)
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
        is_main = cover.is_same(main) & ~is_found
        is_found |= is_main
        rest = replace(cover, required=np.where(is_main, 0, cover.required))
        if rest.required.any():
            yield rest


def _second(shared: Sequence[Cover], main: Cover, any_one: Cover) -> Cover:
    """Return one more requirement of each model that an earlier level insists on, if there is any."""
    found = replace(main, required=np.zeros_like(main.required))
    for cover in shared:
        counts = np.isinf(cover.price) & ~cover.is_same(main) & ~cover.is_same(any_one)
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
        found = cover.where(counts & ~follows & ~cover.is_same(main) & (found.required == 0), found)
    return found
