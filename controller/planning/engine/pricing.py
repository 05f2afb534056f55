"""Exact pricing: the mixes of a model with the least reduced cost, among all of its mixes.

For a model with too many mixes to enumerate, the row that most of its variants serve is relaxed (Lagrangian
relaxation). At its best multiplier each option has a reduced cost of at least 0, and a mix counts for at
least the relaxed optimum plus the reduced costs of its options. So only options close to their variant's best
can be part of a mix close to the model's best, and these are few enough to enumerate.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.options import NONE
from controller.planning.engine.patterns import is_allowed, per_mille, shortfalls
from controller.planning.problem import PER_MILLE, per_mille_missing

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.engine.options import Options
    from controller.planning.engine.shared import Floats, Integers

LOOKED_AT = 2048
"""The maximum number of mixes of one model that are enumerated."""

FEW_OPTIONS = 3
"""Number of options per variant that are enumerated if too many mixes are close."""

HALVINGS = 24
"""The maximum number of halvings of the distance until the mixes within it are few enough."""

STEPS = 48
"""Number of bisection steps for a multiplier."""

ROUNDING = 1e-9
"""Relative error of sums in double precision."""


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
    """(priced models,): every mix with a value of at most this is among those returned."""


def price(
    options: Options,
    models: Integers,
    prices: Prices,
    within: Floats,
    *,
    most: int,
) -> Found:
    """Return the cheapest mixes of some models, at most `most` of each.

    `within` (priced models,) is the value up to which mixes are of interest; if more than `LOOKED_AT` mixes
    of a model might qualify, the enumeration is complete up to a smaller value only.
    """
    relaxed = _Relaxation(options, models, prices)
    near = [relaxed.near(turn, limit) for turn, limit in enumerate(within.tolist())]
    turn = np.repeat(np.arange(len(models)), [len(mixes) for mixes, _ in near])
    mixes = np.concatenate([mixes for mixes, _ in near])
    reaches = np.array([reach for _, reach in near])
    values = _values(options, models[turn], mixes, prices)
    order = np.lexsort((values, turn))
    order = order[np.isfinite(values[order])]
    turn, mixes, values = turn[order], mixes[order], values[order]
    least = np.full(len(models), np.inf)
    np.minimum.at(least, turn, values)
    rank = np.arange(len(turn)) - np.searchsorted(turn, turn)
    cut = rank == most
    reaches[turn[cut]] = np.minimum(reaches[turn[cut]], values[cut])
    kept = (rank < most) & (values <= np.maximum(within, least)[turn])
    return Found(
        bound=np.minimum(least, reaches),
        model=models[turn[kept]],
        options=mixes[kept],
        reaches=reaches,
    )


def _values(options: Options, model: Integers, mixes: Integers, prices: Prices) -> Floats:
    """Return the values of mixes; infinite where a hard stage is not minimal or a ceiling is exceeded."""
    values: Floats = prices.options[mixes].sum(axis=1)
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
    for turn, model in enumerate(models.tolist()):
        tops = [options.first[v] + options.top[v] - options.lower[v] for v in options.members[model]]
        best: tuple[float, float] = (1, math.inf)  # a row of one variant is counted with its options
        for r in np.flatnonzero((options.stage[:, model] != NONE) & (options.requirement[:, model] > 0)):
            required = int(options.requirement[r, model])
            weight = float(prices.stages[options.stage[r, model], model]) * float(options.weight[r, model])
            serving = int((options.amounts[r, tops] > 0).sum())
            if not weight or (serving, required) <= best:
                continue
            best = serving, required
            index[turn], target[turn], worth[turn] = r, required, PER_MILLE * weight / required
            if math.isinf(weight):
                short = per_mille_missing(required, int(most[r, turn]))
                target[turn] = required - short * required // PER_MILLE
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
        self._own = np.repeat(options.first[variants] - self._starts, sizes) + np.arange(int(sizes.sum()))
        """(own options,): their indices among all options."""
        self._model_of_variant = np.repeat(np.arange(len(models)), [len(own) for own in members])
        self._model = np.repeat(self._model_of_variant, sizes)
        slices = iter([slice(a, b) for a, b in zip(self._starts.tolist(), stops.tolist(), strict=True)])
        self._spans = [[next(slices) for _ in own] for own in members]
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
        self._multiplier, self._bound = self._best_multiplier()
        paid = self._paid(self._multiplier)
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
            is_hard = np.isinf(weight)
            counted[where] += np.where(is_hard, forbidden, np.where(is_hard, 0.0, weight) * short)
        return counted

    def _best_multiplier(self) -> tuple[Floats, Floats]:
        """Return each model's best multiplier, by bisection, and the bound it proves, (models,)."""
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
            is_enough = self._provided(middle) >= self._rows.target
            high, low = np.where(is_enough, middle, high), np.where(is_enough, low, middle)
        multipliers = np.array([highest, high, low])
        bounds = np.array([self._bounds(multiplier) for multiplier in multipliers])
        best, models = bounds.argmax(axis=0), np.arange(len(high))
        return multipliers[best, models], bounds[best, models]

    def _paid(self, multiplier: Floats) -> Floats:
        """Return the value of options minus the multiplier times what they provide, (own options,)."""
        paid: Floats = self._cost - multiplier[self._model] * self._amount
        return paid

    def _provided(self, multiplier: Floats) -> Floats:
        """Return the most that a model's cheapest options provide, (models,)."""
        paid = self._paid(multiplier)
        least = np.repeat(np.minimum.reduceat(paid, self._starts), self._sizes)
        given = np.maximum.reduceat(np.where(paid <= least, self._amount, -1.0), self._starts)
        return np.bincount(self._model_of_variant, weights=given).astype(np.float64)

    def _bounds(self, multiplier: Floats) -> Floats:
        """Return the lower bound on the value of all mixes for a multiplier, (models,)."""
        least = np.minimum.reduceat(self._paid(multiplier), self._starts)
        total = np.bincount(self._model_of_variant, weights=least)
        bounds: Floats = total + multiplier * self._rows.target
        return bounds

    def near(self, turn: int, within: float) -> tuple[Integers, float]:
        """Return mixes of a model, and the value up to which they are complete."""
        spans, bound = self._spans[turn], float(self._bound[turn])
        distance = max(0.0, within - bound) * (1 + ROUNDING) + ROUNDING * max(1.0, abs(bound))
        if not math.isfinite(distance):
            reduced = self._reduced[spans[0].start : spans[-1].stop]
            distance = float(reduced[np.isfinite(reduced)].max(initial=0.0)) * len(spans) + 1.0
        for _ in range(HALVINGS):
            mixes = self._box(turn, distance)
            if mixes is not None:
                return mixes, bound + distance
            distance /= 2
        # Too many mixes are close: return some, without a guarantee of completeness.
        some = self._box(turn, distance, most=FEW_OPTIONS)
        return (self._options.padding(0) if some is None else some), bound

    def _box(self, turn: int, distance: float, most: int | None = None) -> Integers | None:
        """Return all mixes within a distance of the relaxed optimum; None if there may be too many.

        `most` is the number of options per variant to consider. All options of all variants but one are
        combined; of that one, only options that together with the others provide about the target are
        considered.
        """
        spans = self._spans[turn]
        near = [span.start + np.flatnonzero(self._reduced[span] <= distance)[:most] for span in spans]
        main = max(range(len(near)), key=lambda k: (len(near[k]), -k))
        grids = [own for k, own in enumerate(near) if k != main]
        if math.prod(map(len, grids)) > LOOKED_AT:
            return None
        others = _combined(grids)
        others = others[self._reduced[others].sum(axis=1) <= distance]
        first, stop = self._completing(turn, distance, near[main], self._amount[others].sum(axis=1))
        counts = np.maximum(stop - first, 0)
        if int(counts.sum()) > LOOKED_AT:
            return None
        which = np.repeat(np.arange(len(counts)), counts)
        steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
        mixes = self._options.padding(len(which))
        chosen = np.insert(others[which], main, near[main][first[which] + steps], axis=1)
        mixes[:, : len(spans)] = self._own[chosen]
        return mixes

    def _completing(
        self, turn: int, distance: float, main: Integers, given: Floats
    ) -> tuple[Integers, Integers]:
        """Return the range of one variant's options that about meet the row, given what the others provide.

        Each unit below or above the target has a price; options beyond the distance at that price are
        excluded.
        """
        amounts = self._amount[main]
        if self._rows.index[turn] == NONE or amounts[-1] <= amounts[0]:
            return np.zeros(len(given), dtype=np.int64), np.full(len(given), len(main))
        rate, target = float(self._multiplier[turn]), float(self._rows.target[turn])
        worth = float(self._rows.worth[turn])
        lowest = -math.inf
        if rate < worth * (1 - ROUNDING):
            lowest = target - (0.0 if math.isinf(worth) else distance / (worth - rate))
        highest = target + distance / rate if rate > 0 else math.inf
        slack = ROUNDING * max(1.0, target)
        # The amounts of a variant ascend with its replicas.
        first = np.searchsorted(amounts, lowest - given - slack)
        return first, np.searchsorted(amounts, highest - given + slack, side="right")


def _combined(grids: Sequence[Integers]) -> Integers:
    """Return the Cartesian product of some index arrays, (combinations, grids)."""
    if not grids:
        return np.zeros((1, 0), dtype=np.int64)
    return np.array(np.meshgrid(*grids, indexing="ij"), dtype=np.int64).reshape(len(grids), -1).T
