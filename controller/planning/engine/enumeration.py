"""Enumerate the mixes of models whose reduced cost is close to the least.

All options of all variants but one are combined, as far as their reduced costs are within the distance; of
that one, only those are taken that together with the others about meet the relaxed row.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controller.planning.engine.options import sum_over_mixes
from controller.planning.engine.shared import Booleans, Floats, Integers

LOOKED_AT = 2048
"""The maximum number of mixes of one model that are enumerated."""

MOST_AT_ONCE = 128
"""The number of models that are enumerated at once; limits memory."""

RELATIVE_ERROR = 1e-9
"""Relative error of sums in double precision."""


@dataclass(frozen=True, kw_only=True)
class Columns:
    """Options of some models, grouped by model and variant; the last one is padding and counts 0."""

    width: int
    """The number of options of a mix, with its padding."""

    variants: Integers
    """(models + 1,): the first variant of each model, and the number of variants."""

    start: Integers
    """(variants + 1,): the first option of each variant, and the number of options."""

    model: Integers
    """(options,): the model."""

    reduced: Floats
    """(options + 1,): reduced costs."""

    amount: Floats
    """(options + 1,): what an option provides for the relaxed row, ascending within a variant."""

    target: Floats
    """(models,): the amount of the relaxed row that leaves no shortfall."""

    above: Floats
    """(models,): what a unit above the target costs, at the multiplier."""

    below: Floats
    """(models,): what a unit below the target costs; infinite if it is not allowed."""


@dataclass(frozen=True, kw_only=True)
class Mixes:
    """Mixes of some models."""

    models: Integers
    """The models whose mixes within the distance are all here."""

    model: Integers
    """(mixes,): the model."""

    options: Integers
    """(mixes, width): indices of options, padded with the last one."""


def near(columns: Columns, models: Integers, distance: Floats, most: int | None = None) -> Iterator[Mixes]:
    """Yield all mixes of some models whose reduced costs sum up to at most a distance, (all models,).

    Models with possibly more than `LOOKED_AT` such mixes are left out. `most` is the number of options per
    variant to consider, by default all.
    """
    is_near = columns.reduced[:-1] <= distance[columns.model]
    options = np.flatnonzero(is_near)
    counts = np.add.reduceat(is_near, columns.start[:-1], dtype=np.int64)
    first = np.cumsum(counts) - counts
    grids = _Grids(columns, options, first, counts if most is None else np.minimum(counts, most))
    few = models[grids.combinations[models] <= LOOKED_AT]
    for at in range(0, len(few), MOST_AT_ONCE):
        yield grids.mixes(few[at : at + MOST_AT_ONCE], distance)


class _Grids:
    """The near options of each model as a grid: one axis per variant, but for the main one."""

    def __init__(self, columns: Columns, options: Integers, first: Integers, counts: Integers) -> None:
        """Take the near options, and the position of the first and the number of those of each variant."""
        self._columns = columns
        self._options = np.append(options, len(columns.reduced) - 1)
        own = np.diff(columns.variants)
        column = np.arange(columns.width)
        has = column < own[:, None]
        variant = np.where(has, columns.variants[:-1, None] + column, 0)
        self._first = np.where(has, first[variant], len(options))
        """(models, width): the position of the first near option of each variant, or that of the padding."""
        lengths = np.where(has, counts[variant], 1)
        self._main = np.where(has, lengths, 0).argmax(axis=1)
        """(models,): the variant with the most near options, which is not part of the grid."""
        self._length = np.take_along_axis(lengths, self._main[:, None], axis=1)[:, 0]
        is_main = column == self._main[:, None]
        self._axes = np.where(is_main, 1, lengths)
        self._others = np.where(is_main, len(options), self._first)
        self.combinations = self._axes.astype(np.float64).prod(axis=1)
        """(models,): the number of combinations of options of all variants but the main one."""

    def mixes(self, models: Integers, distance: Floats) -> Mixes:
        """Return the mixes of some models within their distance."""
        columns = self._columns
        which, chosen = self._combine(models)
        spent = sum_over_mixes(columns.reduced, chosen)
        kept = spent <= distance[models[which]]
        which, chosen, spent = which[kept], chosen[kept], spent[kept]
        model = models[which]
        first, stop = self._completing(model, distance[model] - spent, sum_over_mixes(columns.amount, chosen))
        counts = np.maximum(stop - first, 0)
        of_model = np.bincount(which, weights=counts, minlength=len(models))
        is_whole = of_model <= LOOKED_AT
        counts[~is_whole[which]] = 0
        row = np.repeat(np.arange(len(counts)), counts)
        step = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        found = chosen[row]
        found[np.arange(len(row)), self._main[model[row]]] = self._options[first[row] + step]
        return Mixes(models=models[is_whole], model=model[row], options=found)

    def _combine(self, models: Integers) -> tuple[Integers, Integers]:
        """Return every combination of options of the variants but the main one.

        These are the index of the model (combinations,) and the options (combinations, width), with padding
        in place of the main variant's.
        """
        axes = self._axes[models]
        sizes = axes.prod(axis=1)
        stride = np.cumprod(axes, axis=1) // np.maximum(axes, 1)
        which = np.repeat(np.arange(len(models)), sizes)
        number = np.arange(len(which)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        digit = number[:, None] // stride[which] % axes[which]
        return which, self._options[self._others[models][which] + digit]

    def _completing(self, model: Integers, left: Floats, given: Floats) -> tuple[Integers, Integers]:
        """Return the range of the main variant's options that about meet the row, given the others' amount.

        Each unit below or above the target has a price; options beyond the remaining distance are excluded.
        """
        columns = self._columns
        first = self._first[model, self._main[model]]
        stop = first + self._length[model]
        target = columns.target[model]
        slack = RELATIVE_ERROR * np.maximum(1.0, target)
        lowest = target - _units(left, columns.below[model]) - given - slack
        highest = target + _units(left, columns.above[model]) - given + slack
        amounts = columns.amount[self._options]
        return (
            _search(amounts, first, stop, lowest, passes=np.less),
            _search(amounts, first, stop, highest, passes=np.less_equal),
        )


def _units(distance: Floats, price: Floats) -> Floats:
    """Return the number of units that a distance pays for; any number if they cost nothing."""
    is_paid = price > 0
    return np.where(is_paid, distance / np.where(is_paid, price, 1.0), np.inf)


def _search(
    amounts: Floats, first: Integers, stop: Integers, bounds: Floats, *, passes: np.ufunc
) -> Integers:
    """Return the first position in each range whose amount does not pass a bound, by binary search."""
    low, high = first.copy(), stop.copy()
    for _ in range(int((stop - first).max(initial=0)).bit_length()):
        middle = (low + high) // 2
        is_open = low < high
        before: Booleans = is_open & passes(amounts[middle], bounds)
        low = np.where(before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
    return low
