"""Options: one column of data per variant and number of replicas.

A variant that may have 2 to 5 replicas has four options. A mix of a model has one option for each of its
variants. Every property of a mix (cost, disruption, the capacity that it provides, its use of shared rows) is
a sum over its options, or follows from such sums, so all mixes of all models are valued by indexing a few
arrays. The last option is padding: it counts nothing, and fills the mixes of models with fewer variants.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from controller.planning.engine.shared import Floats, Integers, SharedRows, limit_of, nodes_of, shared_of
from controller.planning.engine.uses import Types, join
from controller.planning.problem import (
    CoverRow,
    Level,
    LimitRow,
    PlacementProblem,
    Stage,
    free_after_removals,
)

Number = TypeVar("Number", np.int64, np.float64)

NONE = -1
"""The index that stands for no variant, no stage or no level."""


@dataclass(frozen=True, kw_only=True)
class Options:
    """All options, grouped by variant and ascending in replicas; the last one is padding and counts 0."""

    members: tuple[tuple[int, ...], ...]
    """The variants of each model."""

    first: Integers
    """(variants,): the option with the fewest replicas."""

    lower: Integers
    """(variants,): the fewest replicas."""

    top: Integers
    """(variants,): the most replicas that could ever have a place."""

    variant: Integers
    """(options,): the variant, or NONE."""

    count: Integers
    """(options,): the number of replicas."""

    cost: Integers
    """(options,): the cost of the replicas, including starts and stops."""

    disruption: Integers
    """(options,): accelerators that start or stop, at least one per replica."""

    amounts: Integers
    """(rows, options): the amount provided for each cover row of the model."""

    requirement: Integers
    """(rows, models): the requirement, in the unit of `amounts`; 0 where the model has no such row."""

    weight: Integers
    """(rows, models): the weight of a per mille of the row's requirement."""

    stage: Integers
    """(rows, models): the stage, or NONE where the model has no such row."""

    levels: tuple[Level, ...]
    """The levels of shortfall in lexicographic order."""

    level: Integers
    """(stages, models): the index of the level of the model's shortfalls at a stage, or NONE."""

    ceilings: tuple[tuple[int, int, Integers], ...]
    """(model, limit, amount per option) of limits over a single model."""

    use_option: Integers
    """(uses,), ascending: the option that uses a shared row."""

    use_row: Integers
    """(uses,): the shared row: the index of a type, or the number of types plus the index of a limit."""

    use_amount: Floats
    """(uses,): the units of the type, or the amount of the limit."""

    @cached_property
    def width(self) -> int:
        """The most variants of a model."""
        return max(map(len, self.members), default=1)

    def padding(self, mixes: int) -> Integers:
        """Return mixes filled with the padding option, (mixes, width)."""
        return np.full((mixes, self.width), len(self.count) - 1, dtype=np.int64)

    @cached_property
    def tops(self) -> Integers:
        """(models, width): the mix with the most replicas of each variant."""
        mixes = self.padding(len(self.members))
        for model, members in enumerate(self.members):
            own = list(members)
            mixes[model, : len(own)] = self.first[own] + self.top[own] - self.lower[own]
        return mixes

    def prices(self, row_prices: Floats) -> Floats:
        """Return the price of each option at the prices of the shared rows, (options,)."""
        paid = self.use_amount * row_prices[self.use_row]
        return np.bincount(self.use_option, weights=paid, minlength=len(self.count)).astype(np.float64)

    def mixes(self, replicas: Sequence[int]) -> tuple[Integers, Integers]:
        """Return the mix of each model for some replica counts: models (models,), options (models, width)."""
        mixes = self.padding(len(self.members))
        for model, members in enumerate(self.members):
            mixes[model, : len(members)] = [self.index(v, replicas[v]) for v in members]
        return np.arange(len(mixes)), mixes

    def index(self, variant: int, count: int) -> int:
        """Return the option for a number of replicas, or the nearest one."""
        most, least = int(self.top[variant]), int(self.lower[variant])
        return int(self.first[variant]) + min(most, max(least, count)) - least


def sum_over_mixes(values: NDArray[Number], mixes: Integers) -> NDArray[Number]:
    """Return the sum of some values of options over each mix, (mixes,).

    A loop over the columns takes a quarter of the time of a sum over the rows, which are short.
    """
    first, *others = mixes.T
    total: NDArray[Number] = values[first]
    for options in others:
        total += values[options]
    return total


def options_of(problem: PlacementProblem, *, has_any_room: bool = False) -> tuple[Options, SharedRows]:
    """Return all options of a problem, and the rows that models share.

    With `has_any_room`, replicas that could never have a place are included.
    """
    members, rows_of = _models(problem)
    model_of = {v: m for m, own in enumerate(members) for v in own}
    ceilings, limit_rows = _split_limits(problem, model_of)
    nodes = nodes_of(problem)
    types = Types(problem, nodes)
    shared = shared_of(problem, nodes, types.all, limit_rows)
    lower = np.array([terms.lower for terms in problem.variants], dtype=np.int64)
    upper = np.array([terms.upper for terms in problem.variants], dtype=np.int64)
    top = upper if has_any_room else _top(problem, shared, types)
    sizes = top - lower + 1
    first = np.cumsum([0, *sizes.tolist()])[:-1]
    variant = np.append(np.repeat(np.arange(len(lower)), sizes), NONE)
    count = np.append(np.arange(sizes.sum()) - np.repeat(first - lower, sizes), 0)
    cost, disruption = _prices(problem, variant, count)
    levels = tuple(sorted({row.level for row in problem.rows}))
    position = {level: index for index, level in enumerate(levels)}
    level = np.full((len(Stage), len(members)), NONE, dtype=np.int64)
    for model, rows in enumerate(rows_of):
        for row in rows:
            level[row.stage, model] = position[row.level]
    requirement, weight, stage, amounts = _rows(problem, members, rows_of, variant, count)
    used = [per_option(row, variant, count, len(lower)) for row in limit_rows]
    every = np.arange(len(count))
    option, row_, amount_ = join(
        [
            *types.uses(first, sizes, lower, variant, count),
            *((every, len(types.all) + index, amounts) for index, amounts in enumerate(used)),
        ]
    )
    return Options(
        members=members,
        first=first,
        lower=lower,
        top=top,
        variant=variant,
        count=count,
        cost=cost,
        disruption=disruption,
        amounts=amounts,
        requirement=requirement,
        weight=weight,
        stage=stage,
        levels=levels,
        level=level,
        ceilings=tuple(
            (model, limit_of(row, problem), per_option(row, variant, count, len(lower)))
            for model, row in ceilings
        ),
        use_option=option,
        use_row=row_,
        use_amount=amount_,
    ), shared


def _models(problem: PlacementProblem) -> tuple[tuple[tuple[int, ...], ...], list[list[CoverRow]]]:
    """Return the variants and rows of each model; a variant without rows is a model of its own."""
    rows: dict[int, list[CoverRow]] = {}
    own: dict[int, set[int]] = {}
    for row in problem.rows:
        rows.setdefault(row.model, []).append(row)
        own.setdefault(row.model, set()).update(v for v, _ in row.terms)
    named = set().union(*own.values())
    groups = [(tuple(sorted(own[model])), rows[model]) for model in rows]
    groups += [((v,), []) for v in range(len(problem.variants)) if v not in named]
    groups.sort(key=lambda pair: pair[0])
    return tuple(members for members, _ in groups), [own_rows for _, own_rows in groups]


def _split_limits(
    problem: PlacementProblem, model_of: Mapping[int, int]
) -> tuple[list[tuple[int, LimitRow]], list[LimitRow]]:
    """Return the limits over a single model, which restrict its mixes, and those that models share."""
    own, shared = [], []
    for row in problem.limits:
        models = {model_of[v] for v, amount in row.terms if amount}
        if len(models) == 1:
            own.append((models.pop(), row))
        elif models:
            shared.append(row)
    return own, shared


def per_option(row: LimitRow, variant: Integers, count: Integers, variants: int) -> Integers:
    """Return how much of a limit some options use, given their variant and number of replicas."""
    per_replica = np.zeros(variants + 1, dtype=np.int64)
    for v, amount in row.terms:
        per_replica[v] += amount
    used: Integers = per_replica[variant] * count
    return used


def _prices(problem: PlacementProblem, variant: Integers, count: Integers) -> tuple[Integers, Integers]:
    """Return cost and disruption of options, both (options,)."""
    numbers = [
        (t.cost, t.start_price, t.stop_price, t.current, max(1, t.accelerators_per_replica))
        for t in problem.variants
    ]
    of = np.array([*numbers, (0, 0, 0, 0, 0)], dtype=np.int64)[variant]
    cost, start, stop, current, size = of.T
    more, fewer = np.maximum(count - current, 0), np.maximum(current - count, 0)
    return cost * count + start * more + stop * fewer, size * (more + fewer)


def _rows(
    problem: PlacementProblem,
    members: Sequence[Sequence[int]],
    rows_of: Sequence[Sequence[CoverRow]],
    variant: Integers,
    count: Integers,
) -> tuple[Integers, Integers, Integers, Integers]:
    """Return requirement, weight and stage (rows, models), and the provided amounts (rows, options)."""
    most = max(map(len, rows_of), default=0)
    requirement = np.zeros((most, len(members)), dtype=np.int64)
    weight, stage = requirement.copy(), np.full_like(requirement, NONE)
    per_replica = np.zeros((most, len(problem.variants) + 1), dtype=np.int64)
    counted = np.zeros_like(per_replica)
    for model, rows in enumerate(rows_of):
        for r, row in enumerate(rows):
            requirement[r, model], weight[r, model], stage[r, model] = row.requirement, row.weight, row.stage
            for v, amount in row.terms:
                per_replica[r, v] += amount
                counted[r, v] = problem.variants[v].most_counted(row.counted)
    return requirement, weight, stage, per_replica[:, variant] * np.minimum(count, counted[:, variant])


def _top(problem: PlacementProblem, shared: SharedRows, types: Types) -> Integers:
    """Return the most replicas of each variant that could ever have places, (variants,)."""
    most_units = shared.most_units()
    rooms = free_after_removals(problem, tuple(terms.lower for terms in problem.variants))
    top = []
    for v, terms in enumerate(problem.variants):
        most = terms.upper
        if terms.accelerators and most > len(terms.bound_replicas):
            most = min(most, len(terms.bound_replicas) + types.most_new_replicas(v, most_units, rooms))
        top.append(max(terms.lower, most))
    for row in problem.limits:
        left = limit_of(row, problem) - sum(amount * problem.variants[v].lower for v, amount in row.terms)
        for v, amount in row.terms:
            top[v] = min(top[v], problem.variants[v].lower + left // amount) if amount else top[v]
    return np.array(top, dtype=np.int64)
