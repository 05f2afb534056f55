"""Exact pricing: the mixes of a model with the least reduced cost, among all of its mixes.

For a model with too many mixes to enumerate, the row that most of its variants serve is relaxed (Lagrangian
relaxation). At its best multiplier each option has a reduced cost of at least 0, and a mix counts for at
least the relaxed optimum plus the reduced costs of its options. So the mixes close to the model's best use
only options close to their variant's best, and these are few enough to enumerate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from controller.planning.engine.enumeration import RELATIVE_ERROR, Columns, Mixes, near
from controller.planning.engine.options import NONE, Options, sum_over_mixes
from controller.planning.engine.patterns import is_allowed, per_mille, shortfalls
from controller.planning.engine.shared import Floats, Integers
from controller.planning.problem import PER_MILLE

FEW_OPTIONS = 3
"""Number of options per variant that are enumerated if too many mixes are close."""

HALVINGS = 24
"""The maximum number of halvings of the distance until the mixes within it are few enough."""

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
class Found:
    """The result of pricing."""

    bound: Floats
    """(priced models,): lower bound on the value of the model's mixes."""

    model: Integers
    options: Integers
    """Mixes close to the bound: models (mixes,), options (mixes, width)."""

    reaches: Floats
    """(priced models,): every mix with a smaller value is among those returned."""


def price(options: Options, models: Integers, prices: Prices, within: Floats, *, most: int) -> Found:
    """Return the cheapest mixes of some models, at most `most` of each.

    `within` (priced models,) is the value up to which mixes are of interest; if more than `LOOKED_AT` mixes
    of a model might qualify, the enumeration is complete up to a smaller value only.
    """
    relaxed = _Relaxation(options, models, prices)
    columns, bound = relaxed.columns(), relaxed.bound
    distance = relaxed.distances(within)
    reaches = bound + distance
    least = np.full(len(models), np.inf)
    parts = [(np.zeros(0, dtype=np.int64), options.padding(0))]

    def keep(mixes: Mixes) -> None:
        """Keep the cheapest mixes, and lower `reaches` where others are dropped."""
        turn, chosen = mixes.model, relaxed.own[mixes.options]
        values = _values(options, models[turn], chosen, prices)
        order = np.lexsort((values, turn))
        order = order[np.isfinite(values[order])]
        turn, chosen, values = turn[order], chosen[order], values[order]
        np.minimum.at(least, turn, values)
        rank = np.arange(len(turn)) - np.searchsorted(turn, turn)
        cut = rank == most
        reaches[turn[cut]] = np.minimum(reaches[turn[cut]], values[cut])
        kept = (rank < most) & (values <= np.maximum(within, least)[turn])
        parts.append((models[turn[kept]], chosen[kept]))

    pending = np.arange(len(models))
    for _ in range(HALVINGS):
        if not len(pending):
            break
        for mixes in near(columns, pending, distance):
            keep(mixes)
            pending = np.setdiff1d(pending, mixes.models)
        distance[pending] /= 2
        reaches[pending] = bound[pending] + distance[pending]
    # Too many mixes are close: take some, without a guarantee of completeness.
    reaches[pending] = bound[pending]
    for mixes in near(columns, pending, distance, FEW_OPTIONS):
        keep(mixes)
    model, chosen = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Found(bound=np.minimum(least, reaches), model=model, options=chosen, reaches=reaches)


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
    """The relaxed row of each model, (priced models,)."""

    index: Integers
    """Index among the model's rows; NONE for none."""

    target: Floats
    """The amount that must be provided, or that leaves no shortfall."""

    worth: Floats
    """Value of a unit short of the target; infinite if the target is hard."""


def _main_rows(options: Options, models: Integers, prices: Prices, most: Integers) -> _Rows:
    """Return the row that most variants of each model serve, ties broken by size, if it has a weight.

    `most` (rows, priced models) is the amount that all variants together can provide.
    """
    index = np.full(len(models), NONE)
    target, worth = np.zeros(len(models)), np.zeros(len(models))
    # A row of one variant is counted with its options.
    most_serving, largest = np.ones(len(models), dtype=np.int64), np.full(len(models), np.inf)
    for r, amounts in enumerate(options.amounts):
        required, weights = options.requirement[r, models], options.weight[r, models]
        stage = options.stage[r, models]
        weight = np.where(weights > 0, prices.stages[stage, models], 0.0) * np.maximum(weights, 1)
        serving = (amounts[options.tops[models]] > 0).sum(axis=1)
        is_larger = (serving > most_serving) | ((serving == most_serving) & (required > largest))
        taken = (stage != NONE) & (required > 0) & (weight != 0) & is_larger
        short = per_mille(np.maximum(required - most[r], 0), required)
        least = required - short * required // PER_MILLE  # the smallest amount with this shortfall
        index[taken], most_serving[taken], largest[taken] = r, serving[taken], required[taken]
        target[taken] = np.where(np.isinf(weight), least, required)[taken]
        worth[taken] = PER_MILLE * weight[taken] / required[taken]
    return _Rows(index=index, target=target, worth=worth)


class _Relaxation:
    """Models with one relaxed row each, at its best multiplier.

    Their options are contiguous: by model, variant and replicas.
    """

    def __init__(self, options: Options, models: Integers, prices: Prices) -> None:
        self._options = options
        members = [options.members[model] for model in models.tolist()]
        variants = np.array([v for own in members for v in own], dtype=np.int64)
        sizes = options.top[variants] - options.lower[variants] + 1
        stops = np.cumsum(sizes)
        self._starts = stops - sizes
        self._sizes = sizes
        all_own = np.repeat(options.first[variants] - self._starts, sizes) + np.arange(int(sizes.sum()))
        self._own = all_own
        self.own = np.append(all_own, len(options.count) - 1)
        """(own options + 1,): their indices among all options, then that of the padding."""
        self._model_of_variant = np.repeat(np.arange(len(models)), [len(own) for own in members])
        self._model = np.repeat(self._model_of_variant, sizes)
        self._variants = np.cumsum([0, *(len(own) for own in members)])
        """(models + 1,): the first variant of each model, and the number of variants."""
        tops = options.first[variants] + sizes - 1
        most = np.array(
            [
                np.bincount(self._model_of_variant, weights=row[tops], minlength=len(models))
                for row in options.amounts
            ]
        ).reshape(len(options.amounts), len(models))
        self._rows = _main_rows(options, models, prices, most.astype(np.int64))
        self._amount = self._provided_by_options()
        self._cost = prices.options[self._own] + self._own_rows(models, prices, tops)
        self._multiplier, self.bound = self._best_multiplier()
        paid = self._surplus(self._multiplier)
        self._reduced = paid - np.repeat(np.minimum.reduceat(paid, self._starts), sizes)

    def _provided_by_options(self) -> Floats:
        """Return the amounts that options provide for the relaxed row, (own options,)."""
        if not len(self._options.amounts):
            return np.zeros(len(self._own))
        row = self._rows.index[self._model]
        return np.where(row != NONE, self._options.amounts[np.maximum(row, 0), self._own], 0).astype(
            np.float64
        )

    def _own_rows(self, models: Integers, prices: Prices, tops: Integers) -> Floats:
        """Return the value of options in rows that only their own variant serves, (own options,)."""
        options, counted = self._options, np.zeros(len(self._own))
        for r, amounts in enumerate(options.amounts):
            serves = amounts[tops] > 0
            serving = np.bincount(self._model_of_variant, weights=serves, minlength=len(models))
            is_own = (options.stage[r, models] != NONE) & (serving == 1)
            where = np.repeat(serves, self._sizes) & is_own[self._model]
            if not where.any():
                continue
            model = models[self._model[where]]
            required = options.requirement[r, model]
            missing = np.maximum(required - amounts[self._own[where]], 0)
            short = per_mille(missing, required) * options.weight[r, model]
            weight = prices.stages[options.stage[r, model], model]
            least = np.full(len(models), np.iinfo(np.int64).max)
            np.minimum.at(least, self._model[where], short)
            forbidden = np.where(short > least[self._model[where]], math.inf, 0.0)
            is_hard = np.isinf(weight)  # infinity times no shortfall is not a number
            counted[where] += np.where(is_hard, forbidden, np.where(is_hard, 0.0, weight) * short)
        return counted

    def _best_multiplier(self) -> tuple[Floats, Floats]:
        """Return each model's best multiplier, by bisection, and the bound it proves, (models,)."""
        # Above `slope`, the range of a variant's values per unit that a replica provides, its largest option
        # is the cheapest. Above the worth of a unit, it is cheaper to be short.
        finite = np.where(np.isfinite(self._cost), self._cost, np.nan)
        span = np.fmax.reduceat(finite, self._starts) - np.fmin.reduceat(finite, self._starts)
        step = self._amount[self._starts + self._sizes - 1] - self._amount[self._starts]
        slope = np.where(step > 0, span * np.maximum(self._sizes - 1, 1) / np.maximum(step, 1.0), 0.0)
        high = np.zeros(len(self._rows.index))
        np.maximum.at(high, self._model_of_variant, slope)
        high = np.where(self._rows.index != NONE, np.minimum(2 * high + 1, self._rows.worth), 0.0)
        low, highest = np.zeros(len(high)), high
        for _ in range(STEPS):
            middle = (low + high) / 2
            is_enough = self._most_provided(middle) >= self._rows.target
            high, low = np.where(is_enough, middle, high), np.where(is_enough, low, middle)
        multipliers = np.array([highest, high, low])
        bounds = np.array([self._bounds(multiplier) for multiplier in multipliers])
        best, models = bounds.argmax(axis=0), np.arange(len(high))
        return multipliers[best, models], bounds[best, models]

    def _surplus(self, multiplier: Floats) -> Floats:
        """Return the value of options minus the multiplier times what they provide, (own options,)."""
        paid: Floats = self._cost - multiplier[self._model] * self._amount
        return paid

    def _most_provided(self, multiplier: Floats) -> Floats:
        """Return the most that a model's cheapest options provide, (models,)."""
        paid = self._surplus(multiplier)
        least = np.repeat(np.minimum.reduceat(paid, self._starts), self._sizes)
        given = np.maximum.reduceat(np.where(paid <= least, self._amount, -1.0), self._starts)
        return np.bincount(self._model_of_variant, weights=given).astype(np.float64)

    def _bounds(self, multiplier: Floats) -> Floats:
        """Return the lower bound on the value of all mixes for a multiplier, (models,)."""
        least = np.minimum.reduceat(self._surplus(multiplier), self._starts)
        total = np.bincount(self._model_of_variant, weights=least)
        bounds: Floats = total + multiplier * self._rows.target
        return bounds

    def distances(self, within: Floats) -> Floats:
        """Return how far values of interest are from the bound; with an infinite limit, all mixes are within.

        `within` (models,) is the limit of the values.
        """
        distance = np.maximum(0.0, within - self.bound) * (1 + RELATIVE_ERROR)
        distance += RELATIVE_ERROR * np.maximum(1.0, np.abs(self.bound))
        first, variants = self._variants[:-1], np.diff(self._variants)
        furthest = np.maximum.reduceat(np.where(np.isfinite(self._reduced), self._reduced, 0), self._starts)
        every = np.maximum.reduceat(furthest, first) * variants + 1.0
        return np.where(np.isfinite(distance), distance, every)

    def columns(self) -> Columns:
        """Return the options with their reduced costs, and the prices of missing the relaxed row's target."""
        rate, worth = self._multiplier, self._rows.worth
        below = np.where(rate < worth * (1 - RELATIVE_ERROR), worth - rate, 0.0)
        return Columns(
            width=self._options.width,
            variants=self._variants,
            start=np.append(self._starts, len(self._reduced)),
            model=self._model,
            reduced=np.append(self._reduced, 0.0),
            amount=np.append(self._amount, 0.0),
            target=self._rows.target,
            above=rate,
            below=below,
        )
