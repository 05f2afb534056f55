"""Exact pricing: the mixes of a model with the least reduced cost, among all of its mixes.

A model can have too many mixes to enumerate. The row that most of its variants serve is relaxed (Lagrangian
relaxation, Geoffrion 1974). At its best multiplier each option has a reduced cost of at least 0, and a mix
counts for at least the relaxed optimum plus the reduced costs of its options. So the mixes close to the
model's best use only options close to their variant's best, and these are few enough to enumerate: all
options of all variants but one are combined, each with those of the last one that then about meet the row.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from controller.planning.engine.options import NONE, Options, sum_over_mixes
from controller.planning.engine.patterns import is_allowed, per_mille, shortfalls
from controller.planning.engine.shared import Booleans, Floats, Integers
from controller.planning.problem import PER_MILLE

FEW_OPTIONS = 3
"""Number of options per variant that are enumerated if too many mixes are close."""

HALVINGS = 24
"""The maximum number of halvings of the distance until the mixes within it are few enough."""

LOOKED_AT = 2048
"""The maximum number of mixes of one model that are enumerated."""

MOST_AT_ONCE = 128
"""The number of models that are enumerated at once; limits memory."""

RELATIVE_ERROR = 1e-9
"""Relative error of sums in double precision."""

STEPS = 48
"""Number of bisection steps for a multiplier."""


@dataclass(frozen=True, kw_only=True)
class Prices:
    """Objective coefficients of mixes: of their options, and of each unit of shortfall."""

    options: Floats
    """(options,)."""

    stages: Floats
    """(stages, models): per unit of weighted shortfall; infinite where shortfall must be minimal."""

    least: Integers
    """(stages, models): the least shortfall."""


@dataclass(frozen=True, kw_only=True)
class PricingResult:
    """The result of pricing."""

    bound: Floats
    """(models,): lower bound on the value of the model's mixes."""

    model: Integers
    options: Integers
    """Mixes close to the bound: models (mixes,), options (mixes, width)."""

    reaches: Floats
    """(models,): every mix with a smaller value is among those returned."""


def price(options: Options, prices: Prices, within: Floats, *, most: int) -> PricingResult:
    """Return the cheapest mixes of each model, at most `most` of each.

    `within` (models,) is the value up to which mixes are of interest; if more than `LOOKED_AT` mixes
    of a model might qualify, the enumeration is complete up to a smaller value only.
    """
    relaxed, models = _Relaxation(options, prices), len(options.members)
    bound = relaxed.bound
    distance = relaxed.distances(within)
    reaches = bound + distance
    least = np.full(models, np.inf)
    parts = [(np.zeros(0, dtype=np.int64), options.padding(0))]

    def keep(model: Integers, mixes: Integers) -> None:
        """Keep the cheapest mixes, and lower `reaches` where others are dropped."""
        chosen = relaxed.own[mixes]
        values = _values(options, model, chosen, prices)
        order = np.lexsort((values, model))
        order = order[np.isfinite(values[order])]
        model, chosen, values = model[order], chosen[order], values[order]
        np.minimum.at(least, model, values)
        rank = np.arange(len(model)) - np.searchsorted(model, model)
        cut = rank == most
        reaches[model[cut]] = np.minimum(reaches[model[cut]], values[cut])
        kept = (rank < most) & (values <= np.maximum(within, least)[model])
        parts.append((model[kept], chosen[kept]))

    pending = np.arange(models)
    for _ in range(HALVINGS):
        if not len(pending):
            break
        for whole, model, mixes in relaxed.near(pending, distance):
            keep(model, mixes)
            pending = np.setdiff1d(pending, whole)
        distance[pending] /= 2
        reaches[pending] = bound[pending] + distance[pending]
    # Too many mixes are close: take some, without a guarantee of completeness.
    reaches[pending] = bound[pending]
    for _, model, mixes in relaxed.near(pending, distance, FEW_OPTIONS):
        keep(model, mixes)
    model_of, chosen = (np.concatenate(part) for part in zip(*parts, strict=True))
    return PricingResult(bound=np.minimum(least, reaches), model=model_of, options=chosen, reaches=reaches)


def _values(options: Options, model: Integers, mixes: Integers, prices: Prices) -> Floats:
    """Return the values of mixes; infinite where a hard stage is not minimal or a ceiling is exceeded."""
    values: Floats = sum_over_mixes(prices.options, mixes)
    short = shortfalls(options, model, mixes)
    weights = prices.stages[:, model]
    is_hard = np.isinf(weights)
    values += (np.where(is_hard, 0.0, weights) * short).sum(axis=0)
    values[(is_hard & (short > prices.least[:, model])).any(axis=0)] = math.inf
    values[~is_allowed(options, model, mixes)] = math.inf
    return values


@dataclass(frozen=True, kw_only=True)
class _Rows:
    """The relaxed row of each model, (models,)."""

    index: Integers
    """Index among the model's rows; NONE for none."""

    target: Floats
    """The amount that must be provided, or that leaves no shortfall."""

    worth: Floats
    """Value of a unit short of the target; infinite if the target is hard."""


def _main_rows(options: Options, prices: Prices, most: Integers) -> _Rows:
    """Return the row that most variants of each model serve, ties broken by size, if it has a weight.

    `most` (rows, models) is the amount that all variants together can provide.
    """
    models = np.arange(len(options.members))
    index = np.full(len(models), NONE)
    target, worth = np.zeros(len(models)), np.zeros(len(models))
    # A row of one variant is counted with its options.
    most_serving, largest = np.ones(len(models), dtype=np.int64), np.full(len(models), np.inf)
    for r, amounts in enumerate(options.amounts):
        required, weights, stage = options.requirement[r], options.weight[r], options.stage[r]
        weight = np.where(weights > 0, prices.stages[stage, models], 0.0) * np.maximum(weights, 1)
        serving = (amounts[options.tops] > 0).sum(axis=1)
        is_larger = (serving > most_serving) | ((serving == most_serving) & (required > largest))
        mask = (stage != NONE) & (required > 0) & (weight != 0) & is_larger
        short = per_mille(np.maximum(required - most[r], 0), required)
        least = required - short * required // PER_MILLE  # the smallest amount with this shortfall
        index[mask], most_serving[mask], largest[mask] = r, serving[mask], required[mask]
        target[mask] = np.where(np.isinf(weight), least, required)[mask]
        worth[mask] = PER_MILLE * weight[mask] / required[mask]
    return _Rows(index=index, target=target, worth=worth)


class _Relaxation:
    """All models with one relaxed row each, at its best multiplier.

    Their own options are contiguous: by model, variant and replicas.
    """

    def __init__(self, options: Options, prices: Prices) -> None:
        self._options, self.width = options, options.width
        members, models = options.members, len(options.members)
        variants = np.array([v for own in members for v in own], dtype=np.int64)
        sizes = options.top[variants] - options.lower[variants] + 1
        stops = np.cumsum(sizes)
        self.starts = stops - sizes
        self._sizes = sizes
        self._own = np.repeat(options.first[variants] - self.starts, sizes) + np.arange(int(sizes.sum()))
        self.own = np.append(self._own, len(options.count) - 1)
        """(own options + 1,): their indices among all options, then that of the padding."""
        self._model_of_variant = np.repeat(np.arange(models), [len(own) for own in members])
        self.model = np.repeat(self._model_of_variant, sizes)
        """(own options,): the model."""
        self.variants = np.cumsum([0, *(len(own) for own in members)])
        """(models + 1,): the first variant of each model, and the number of variants."""
        tops = options.first[variants] + sizes - 1
        most = np.array(
            [
                np.bincount(self._model_of_variant, weights=row[tops], minlength=models)
                for row in options.amounts
            ]
        ).reshape(len(options.amounts), models)
        self.rows = _main_rows(options, prices, most.astype(np.int64))
        self._amount = self._provided_by_options()
        self._cost = prices.options[self._own] + self._own_rows(prices, tops)
        self.rate, self.bound = self._best_multiplier()
        """(models,): the multiplier, which is the price of a unit above the target, and the bound."""
        paid = self._surplus(self.rate)
        reduced = paid - np.repeat(np.minimum.reduceat(paid, self.starts), sizes)
        self.reduced, self.amount = np.append(reduced, 0.0), np.append(self._amount, 0.0)
        """(own options + 1,): reduced costs, and what an option provides for the relaxed row."""

    def _provided_by_options(self) -> Floats:
        """Return the amounts that options provide for the relaxed row, (own options,)."""
        if not len(self._options.amounts):
            return np.zeros(len(self._own))
        row = self.rows.index[self.model]
        return np.where(row != NONE, self._options.amounts[np.maximum(row, 0), self._own], 0).astype(
            np.float64
        )

    def _own_rows(self, prices: Prices, tops: Integers) -> Floats:
        """Return the value of options in rows that only their own variant serves, (own options,)."""
        options, counted = self._options, np.zeros(len(self._own))
        models = len(options.members)
        for r, amounts in enumerate(options.amounts):
            serves = amounts[tops] > 0
            serving = np.bincount(self._model_of_variant, weights=serves, minlength=models)
            is_own = (options.stage[r] != NONE) & (serving == 1)
            where = np.repeat(serves, self._sizes) & is_own[self.model]
            if not where.any():
                continue
            model = self.model[where]
            required = options.requirement[r, model]
            missing = np.maximum(required - amounts[self._own[where]], 0)
            short = per_mille(missing, required) * options.weight[r, model]
            weight = prices.stages[options.stage[r, model], model]
            least = np.full(models, np.iinfo(np.int64).max)
            np.minimum.at(least, model, short)
            forbidden = np.where(short > least[model], math.inf, 0.0)
            is_hard = np.isinf(weight)  # infinity times no shortfall is not a number
            counted[where] += np.where(is_hard, forbidden, np.where(is_hard, 0.0, weight) * short)
        return counted

    def _best_multiplier(self) -> tuple[Floats, Floats]:
        """Return each model's best multiplier, by bisection, and the bound it proves, (models,)."""
        # Above `slope`, the range of a variant's values per unit that a replica provides, its largest option
        # is the cheapest. Above the worth of a unit, it is cheaper to be short.
        finite = np.where(np.isfinite(self._cost), self._cost, np.nan)
        span = np.fmax.reduceat(finite, self.starts) - np.fmin.reduceat(finite, self.starts)
        step = self._amount[self.starts + self._sizes - 1] - self._amount[self.starts]
        slope = np.where(step > 0, span * np.maximum(self._sizes - 1, 1) / np.maximum(step, 1.0), 0.0)
        high = np.zeros(len(self.rows.index))
        np.maximum.at(high, self._model_of_variant, slope)
        high = np.where(self.rows.index != NONE, np.minimum(2 * high + 1, self.rows.worth), 0.0)
        low, highest = np.zeros(len(high)), high
        for _ in range(STEPS):
            middle = (low + high) / 2
            is_enough = self._most_provided(middle) >= self.rows.target
            high, low = np.where(is_enough, middle, high), np.where(is_enough, low, middle)
        multipliers = np.array([highest, high, low])
        bounds = np.array([self._bounds(multiplier) for multiplier in multipliers])
        best, models = bounds.argmax(axis=0), np.arange(len(high))
        return multipliers[best, models], bounds[best, models]

    def _surplus(self, multiplier: Floats) -> Floats:
        """Return the value of options minus the multiplier times what they provide, (own options,)."""
        paid: Floats = self._cost - multiplier[self.model] * self._amount
        return paid

    def _most_provided(self, multiplier: Floats) -> Floats:
        """Return the most that a model's cheapest options provide, (models,)."""
        paid = self._surplus(multiplier)
        least = np.repeat(np.minimum.reduceat(paid, self.starts), self._sizes)
        given = np.maximum.reduceat(np.where(paid <= least, self._amount, -1.0), self.starts)
        return np.bincount(self._model_of_variant, weights=given).astype(np.float64)

    def _bounds(self, multiplier: Floats) -> Floats:
        """Return the lower bound on the value of all mixes for a multiplier, (models,)."""
        least = np.minimum.reduceat(self._surplus(multiplier), self.starts)
        total = np.bincount(self._model_of_variant, weights=least)
        bounds: Floats = total + multiplier * self.rows.target
        return bounds

    def distances(self, within: Floats) -> Floats:
        """Return how far values of interest are from the bound; with an infinite limit, all mixes are within.

        `within` (models,) is the limit of the values.
        """
        distance = np.maximum(0.0, within - self.bound) * (1 + RELATIVE_ERROR)
        distance += RELATIVE_ERROR * np.maximum(1.0, np.abs(self.bound))
        first, variants = self.variants[:-1], np.diff(self.variants)
        reduced = self.reduced[:-1]
        furthest = np.maximum.reduceat(np.where(np.isfinite(reduced), reduced, 0), self.starts)
        every = np.maximum.reduceat(furthest, first) * variants + 1.0
        return np.where(np.isfinite(distance), distance, every)

    def near(
        self, models: Integers, distance: Floats, most: int | None = None
    ) -> Iterator[tuple[Integers, Integers, Integers]]:
        """Yield all mixes of some models whose reduced costs sum up to at most a distance, (all models,).

        These are models whose mixes are complete, and of mixes the model (mixes,) and own options (mixes,
        width). Models with more than `LOOKED_AT` mixes are left out; `most` limits the options per variant.
        """
        grids = _Grids(self, distance, most)
        few = models[grids.combinations[models] <= LOOKED_AT]
        for at in range(0, len(few), MOST_AT_ONCE):
            yield grids.mixes(few[at : at + MOST_AT_ONCE])


class _Grids:
    """The near options of each model as a grid: one axis per variant, but for the main one."""

    def __init__(self, relaxed: _Relaxation, distance: Floats, most: int | None) -> None:
        self._relaxed, self._distance = relaxed, distance
        is_near = relaxed.reduced[:-1] <= distance[relaxed.model]
        options = np.flatnonzero(is_near)
        counts = np.add.reduceat(is_near, relaxed.starts, dtype=np.int64)
        first = np.cumsum(counts) - counts
        self._options = np.append(options, len(is_near))
        column = np.arange(relaxed.width)
        has = column < np.diff(relaxed.variants)[:, None]
        variant = np.where(has, relaxed.variants[:-1, None] + column, 0)
        self._first = np.where(has, first[variant], len(options))
        """(models, width): the position of the first near option of each variant, or that of the padding."""
        lengths = np.where(has, counts[variant] if most is None else np.minimum(counts, most)[variant], 1)
        self._main = np.where(has, lengths, 0).argmax(axis=1)
        """(models,): the variant with the most near options, which is not part of the grid."""
        self._length = np.take_along_axis(lengths, self._main[:, None], axis=1)[:, 0]
        is_main = column == self._main[:, None]
        self._axes = np.where(is_main, 1, lengths)
        self._others = np.where(is_main, len(options), self._first)
        self.combinations = self._axes.astype(np.float64).prod(axis=1)
        """(models,): the number of combinations of options of all variants but the main one."""

    def mixes(self, models: Integers) -> tuple[Integers, Integers, Integers]:
        """Return which of the models have all mixes, and of each mix the model and the own options."""
        relaxed, distance = self._relaxed, self._distance
        which, chosen = self._combine(models)
        spent = sum_over_mixes(relaxed.reduced, chosen)
        kept = spent <= distance[models[which]]
        which, chosen, spent = which[kept], chosen[kept], spent[kept]
        model = models[which]
        first, stop = self._main_range(model, distance[model] - spent, sum_over_mixes(relaxed.amount, chosen))
        counts = np.maximum(stop - first, 0)
        of_model = np.bincount(which, weights=counts, minlength=len(models))
        is_whole = of_model <= LOOKED_AT
        counts[~is_whole[which]] = 0
        row = np.repeat(np.arange(len(counts)), counts)
        step = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
        mixes = chosen[row]
        mixes[np.arange(len(row)), self._main[model[row]]] = self._options[first[row] + step]
        return models[is_whole], model[row], mixes

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

    def _main_range(self, model: Integers, left: Floats, given: Floats) -> tuple[Integers, Integers]:
        """Return the range of the main variant's options that about meet the row, given the others' amount.

        Each unit below or above the target has a price; options beyond the remaining distance are excluded.
        """
        relaxed = self._relaxed
        first = self._first[model, self._main[model]]
        stop = first + self._length[model]
        target, worth = relaxed.rows.target[model], relaxed.rows.worth[model]
        above = relaxed.rate[model]
        below = np.where(above < worth * (1 - RELATIVE_ERROR), worth - above, 0.0)
        slack = RELATIVE_ERROR * np.maximum(1.0, target)
        lowest = target - _units(left, below) - given - slack
        highest = target + _units(left, above) - given + slack
        amounts = relaxed.amount[self._options]
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
        # A model without variants has the padding, which is the last position.
        before: Booleans = is_open & passes(amounts[np.minimum(middle, len(amounts) - 1)], bounds)
        low = np.where(before, middle + 1, low)
        high = np.where(is_open & ~before, middle, high)
    return low
