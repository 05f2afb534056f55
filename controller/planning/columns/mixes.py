"""Replica mixes worth considering: covers, what runs now moved as little as possible, and parts of both.

A mix is a vector of replicas of a model's variants. The mixes of a cohort form one array of shape (n, j,
w), always between the variants' bounds; that some appear twice does no harm.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.problem import Stage

if TYPE_CHECKING:
    from controller.planning.columns.arrays import Booleans, Floats, Integers
    from controller.planning.columns.cohorts import Cohort, Requirements

SECONDARY_REPLICAS = 3
"""How many replicas of a second variant a cover may begin with; what lies beyond is found by `neighbours`."""

BELOW = (0.995, 0.99, 0.98, 0.96, 0.92, 0.84)
"""Which parts of a mix in a divisible answer are columns, too: what is whole does not quite fit as well."""

PARTS = 8
"""In how many steps a cover is cut, for when there is not room for all of it."""

EFFICIENT_VARIANTS = 6
"""Among how many variants, the most efficient ones first, pairs are formed."""


def first_mixes(cohort: Cohort) -> Integers:
    """Return mixes to begin with, (n, j, w): all that there are where they are few."""
    if cohort.is_enumerable:
        return _all(cohort)
    mixes = [cohort.lower[:, None, :], *_for_all(cohort)]
    if cohort.is_confined:  # where one type is used up, others have to complete a cover
        mixes += _for_all(replace(cohort, upper=cohort.useful))
    return np.concatenate(mixes, axis=1)


def _for_all(cohort: Cohort) -> list[Integers]:
    """Return mixes for all requirements of the models, within the bounds."""
    current = np.clip(cohort.current, cohort.lower, cohort.upper)
    mixes = [current[:, None, :], _parts(cohort.lower, current)]
    for row in cohort.requirements:
        if row.stage is Stage.MINIMUM:
            mixes.append(_completed(cohort, row, cohort.lower[:, None, :]))
        elif row.stage is Stage.DEMAND:
            mixes += _for_demand(cohort, row, _wanted(cohort), current)
        else:  # what is ready counts, and nothing new
            ready = np.clip(cohort.ready, cohort.lower, cohort.upper)
            mixes.append(_completed(replace(cohort, upper=ready), row, cohort.lower[:, None, :]))
    return [np.clip(m, cohort.lower[:, None], cohort.upper[:, None]) for m in mixes]


def rounded(cohort: Cohort, blends: Floats) -> Integers:
    """Return whole mixes near a blend of mixes, (n, w): rounded, and completed to covers, (n, j, w)."""
    near = [np.floor(blends), np.rint(blends), np.ceil(blends), *(np.floor(blends * part) for part in BELOW)]
    limits = cohort.lower, cohort.useful
    mixes = [np.clip(mix.astype(np.int64), *limits)[:, None, :] for mix in near]
    bounded = replace(cohort, upper=cohort.useful)
    for row in cohort.requirements:
        if row.stage is Stage.DEMAND:
            mixes.append(_completed(bounded, row, np.concatenate(mixes[:2], axis=1)))
    return np.concatenate(mixes, axis=1)


def neighbours(cohort: Cohort, mixes: Integers) -> Integers:
    """Return the mixes one step from each given one, (n, w): a replica more or less, or one swapped."""
    around = mixes[:, None, :] + _steps(mixes.shape[1])[None, :, :]
    near: Integers = np.clip(around, cohort.lower[:, None, :], cohort.upper[:, None, :])
    return near


def _all(cohort: Cohort) -> Integers:
    """Return every mix of each model; the last one is repeated where a model has fewer than others."""
    choices = cohort.upper - cohort.lower + 1
    numbers = np.arange(int(choices.prod(axis=1).max(initial=1)))[None, :, None]
    behind = np.cumprod(choices, axis=1) // choices
    digits = (
        np.minimum(numbers, choices.prod(axis=1)[:, None, None] - 1)
        // behind[:, None, :]
        % choices[:, None, :]
    )
    mixes: Integers = cohort.lower[:, None, :] + digits
    return mixes


def _for_demand(cohort: Cohort, row: Requirements, wanted: Integers, current: Integers) -> list[Integers]:
    """Return covers of one requirement that start from what is wanted anyway, and from what runs now."""
    starts = wanted[:, None, :] + _seconds(cohort, row)
    whole = _completed(cohort, row, starts[:, :1])
    return [
        _completed(cohort, row, starts),
        _completed(cohort, row, current[:, None, :]),
        _shrunk(row, current),
        *(_parts(wanted, whole[:, main]) for main in range(whole.shape[1])),
    ]


def _wanted(cohort: Cohort) -> Integers:
    """Return the replicas that requirements of single variants ask for, (n, w)."""
    wanted = cohort.lower
    for row in cohort.requirements:
        alone = (row.amounts > 0) & ((row.amounts > 0).sum(axis=1) == 1)[:, None]
        if row.stage is not Stage.CONTINUITY:
            needed = -(-row.requirement[:, None] // np.maximum(row.amounts, 1))
            wanted = np.where(alone, np.maximum(wanted, needed), wanted)
    return np.minimum(wanted, cohort.upper)


def _seconds(cohort: Cohort, row: Requirements) -> Integers:
    """Return what covers begin with, (n, j, w): nothing, or a few replicas of one variant."""
    width = cohort.shape[1]
    few = [np.zeros((1, width), dtype=np.int64)]
    few += [count * np.eye(width, dtype=np.int64) for count in range(1, SECONDARY_REPLICAS + 1)]
    begun = np.concatenate(few if width > 1 else few[:1])[None, :, :]
    return np.where(_is_efficient(cohort, row)[:, None, :], begun, 0)


def _is_efficient(cohort: Cohort, row: Requirements) -> Booleans:
    """(n, w): whether the variant is among those that serve the requirement at the least cost."""
    price = np.where(row.amounts > 0, cohort.cost / np.maximum(row.amounts, 1), np.inf)
    rank = np.argsort(np.argsort(price, axis=1, kind="stable"), axis=1)
    efficient: Booleans = rank < EFFICIENT_VARIANTS
    return efficient


def _completed(cohort: Cohort, row: Requirements, starts: Integers) -> Integers:
    """Return each start (n, j, w) completed to a cover, with each variant as the main one: (n, w * j, w).

    Where the main variant's bound is reached, the others follow, the most efficient first.
    """
    width = cohort.shape[1]
    price = np.where(row.amounts > 0, cohort.cost / np.maximum(row.amounts, 1), np.inf)
    turns = np.argsort(price, axis=1, kind="stable")
    covers = []
    for main in range(width):
        mixes = np.minimum(starts, cohort.upper[:, None, :])
        missing = row.requirement[:, None] - (mixes * row.amounts[:, None, :]).sum(axis=2)
        for turn in [np.full(len(turns), main), *turns.T] if width > 1 else [turns[:, 0]]:
            missing = _add(cohort, row, mixes, variant=turn, missing=missing)
        covers.append(mixes)
    return np.concatenate(covers, axis=1)


def _add(
    cohort: Cohort, row: Requirements, mixes: Integers, *, variant: Integers, missing: Integers
) -> Integers:
    """Add the missing replicas of one variant per model, as far as allowed; return what is missing then."""
    model = np.arange(len(variant))
    amount = row.amounts[model, variant][:, None]
    room = cohort.upper[model, variant][:, None] - mixes[model, :, variant]
    needed = -(-np.maximum(missing, 0) // np.maximum(amount, 1))
    added = np.where(amount > 0, np.minimum(needed, room), 0)
    mixes[model, :, variant] += added
    covered: Integers = added * amount
    return missing - covered


def _shrunk(row: Requirements, current: Integers) -> Integers:
    """Return what runs now without what one variant has too much, (n, w, w)."""
    spare = np.maximum((current * row.amounts).sum(axis=1) - row.requirement, 0)
    removable = np.where(row.amounts > 0, spare[:, None] // np.maximum(row.amounts, 1), current)
    return current[:, None, :] - _diagonal(np.minimum(removable, current))


def _diagonal(values: Integers) -> Integers:
    """Return (n, w) as (n, w, w), each value in a vector of its own."""
    return values[:, None, :] * np.eye(values.shape[1], dtype=np.int64)[None, :, :]


def _parts(base: Integers, mixes: Integers) -> Integers:
    """Return the steps from a base to each mix, both (n, w): (n, PARTS - 1, w)."""
    steps = np.arange(1, PARTS)[None, :, None]
    return base[:, None, :] + (mixes - base)[:, None, :] * steps // PARTS


def _steps(width: int) -> Integers:
    """Return the steps to a neighbour, (j, w)."""
    unit = np.eye(width, dtype=np.int64)
    singles = [sign * count * unit[v] for v in range(width) for count in (1, 2) for sign in (1, -1)]
    swaps = [
        gained * unit[more] - lost * unit[less]
        for more, less in permutations(range(width), 2)
        for gained, lost in ((1, 1), (2, 1), (1, 2), (3, 1), (1, 3))
    ]
    return np.array([*singles, *swaps], dtype=np.int64)
