"""Patterns: replica mixes of one model, with everything about them that does not depend on other models.

Source: the pattern formulation of Gilmore and Gomory (1961). A pattern names an option for each variant of
its model; what a model alone decides (shortfalls, cost, disruption) is a number in its patterns, so only what
models share is left to be solved.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.engine.options import NONE
from controller.planning.problem import PER_MILLE, Stage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from controller.planning.engine.options import Options
    from controller.planning.engine.shared import Booleans, Floats, Integers

MOST_PATTERNS = 150_000
"""Of all models together that are enumerated; each model gets its share."""

MOST_OF_MODEL = 4096
"""Mixes of one model that are enumerated at most, however few models there are."""

LEAST_OF_MODEL = 64
"""Mixes up to which a model is enumerated, however many models there are."""

FEW = 4
"""Of a model that is not enumerated: all fewer replicas of each variant alone are mixes to begin with."""

PARTS = 8
"""Of such a model: what just meets each of so many equal parts of a requirement is a mix to begin with."""

MOST_ROUNDED = 6
"""Variants of a model whose mean options are rounded both ways."""

WHOLE = 1e-6
"""As near to a whole number a mean option is one."""


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """Patterns by model; those of one stand together."""

    model: Integers
    """(patterns,), ascending."""

    options: Integers
    """(patterns, most variants of a model): padded with the last option, which counts nothing."""

    cost: Integers
    """(patterns,): of the replicas, their starts and stops."""

    disruption: Integers
    """(patterns,): accelerators that start or stop, at least one for each replica."""

    short: Integers
    """(stages, patterns): weighted shortfall in per mille."""

    least_short: Integers
    """(stages, models): no mix of the model is less short; of one with a ceiling, maybe none is as little."""

    is_enumerated: Booleans
    """(models,): whether no other mix of the model can be part of a better answer."""

    start: Integers
    """(models,): where the patterns of each model begin."""

    @cached_property
    def _keys(self) -> NDArray[np.void]:
        """(patterns,): model and options as one sortable record."""
        return _records(self.model, self.options)

    def numbers(self, model: Integers, options: Integers) -> Integers:
        """Return the numbers of patterns, given models and options. Raises KeyError for one not there."""
        records = _records(model, options)
        found = np.minimum(np.searchsorted(self._keys, records), len(self._keys) - 1)
        if not np.array_equal(self._keys[found], records):
            raise KeyError("a mix is not among the patterns")
        return found

    def replicas(self, options: Options, chosen: Integers) -> tuple[int, ...]:
        """Return per variant the replicas of the chosen patterns (models,)."""
        own = self.options[chosen].ravel()
        replicas = np.zeros(len(options.first) + 1, dtype=np.int64)
        replicas[options.variant[own]] = options.count[own]
        return tuple(replicas[:-1].tolist())

    def only(self, kept: Booleans) -> NDArray[np.void]:
        """Return which patterns some are, whatever their numbers."""
        return self._keys[kept]

    def least(self, values: Floats) -> Floats:
        """Return the least of some values over the patterns of each model, (models,)."""
        return np.minimum.reduceat(values, self.start)

    def best(self, values: Floats) -> Integers:
        """Return the first pattern of each model that has the least value, (models,)."""
        at_least = np.flatnonzero(values <= self.least(values)[self.model])
        return at_least[np.searchsorted(self.model[at_least], np.arange(len(self.start)))]


def valued(options: Options, model: Integers, mixes: Integers, is_enumerated: Booleans) -> Patterns:
    """Return the patterns of some mixes, each once, without those that a ceiling forbids.

    `model` (mixes,) is the model of each mix, `mixes` (mixes, width) its options. Something of each model has
    to be left.
    """
    allowed = is_allowed(options, model, mixes)
    model, mixes = model[allowed], mixes[allowed]
    order = np.lexsort((*mixes.T[::-1], model))
    model, mixes = model[order], mixes[order]
    first = np.ones(len(model), dtype=np.bool_)
    first[1:] = (mixes[1:] != mixes[:-1]).any(axis=1) | (model[1:] != model[:-1])
    model, mixes = model[first], mixes[first]
    start = np.searchsorted(model, np.arange(len(options.members)))
    short = shortfalls(options, model, mixes)
    least = np.minimum.reduceat(short, start, axis=1)
    unlimited = shortfalls(options, np.arange(len(start)), options.tops)
    return Patterns(
        model=model,
        options=mixes,
        cost=options.cost[mixes].sum(axis=1),
        disruption=options.disruption[mixes].sum(axis=1),
        short=short,
        least_short=np.where(is_enumerated, least, np.minimum(least, unlimited)),
        is_enumerated=is_enumerated,
        start=start,
    )


def _records(model: Integers, options: Integers) -> NDArray[np.void]:
    """Return each model with its options as one record; records compare number by number."""
    keys = np.ascontiguousarray(np.concatenate([model[:, None], options], axis=1))
    return keys.view(np.dtype([("", np.int64)] * keys.shape[1])).ravel()


def per_mille(missing: Integers, required: Integers) -> Integers:
    """Return what is missing of what is required in per mille, rounded up; nothing is missing of nothing."""
    return -(-PER_MILLE * missing // np.maximum(required, 1))


def shortfalls(options: Options, model: Integers, mixes: Integers) -> Integers:
    """Return the weighted shortfall of each mix at each stage, (stages, mixes)."""
    short = np.zeros((len(Stage), len(model)), dtype=np.int64)
    for r, amounts in enumerate(options.amounts):
        required, stage = options.requirement[r, model], options.stage[r, model]
        missing = np.maximum(required - amounts[mixes].sum(axis=1), 0)
        part = per_mille(missing, required) * options.weight[r, model]
        has = stage != NONE
        short[stage[has], np.flatnonzero(has)] += part[has]
    return short


def joined(options: Options, patterns: Patterns, model: Integers, mixes: Integers) -> Patterns:
    """Return the patterns with more of them."""
    return valued(
        options,
        np.concatenate([patterns.model, model]),
        np.concatenate([patterns.options, mixes]),
        patterns.is_enumerated,
    )


def first_patterns(options: Options, most_of_model: int = MOST_OF_MODEL) -> Patterns:
    """Return all mixes that might matter of models that have few, and some of each other one."""
    models = len(options.members)
    most = min(most_of_model, max(LEAST_OF_MODEL, MOST_PATTERNS // max(1, models)))
    is_enumerated = np.zeros(models, dtype=np.bool_)
    parts, which = [], []
    for model, members in enumerate(options.members):
        sizes = [int(options.top[v] - options.lower[v]) + 1 for v in members]
        is_enumerated[model] = math.prod(sizes) <= most
        counts = _grid(sizes) if is_enumerated[model] else _sample(options, model, members, sizes)
        mixes = options.padding(len(counts))
        mixes[:, : len(members)] = counts + options.first[list(members)]
        parts.append(mixes)
        which.append(np.full(len(counts), model, dtype=np.int64))
    model_of, every = np.concatenate(which), np.concatenate(parts)
    # Of a sample the mix with a replica less may not be there.
    kept = ~is_enumerated[model_of] | ~_is_dominated(options, model_of, every)
    return valued(options, model_of[kept], every[kept], is_enumerated)


def _grid(sizes: Sequence[int]) -> Integers:
    """Return all mixes of so many options each, (mixes, variants)."""
    mixes = np.zeros((math.prod(sizes), len(sizes)), dtype=np.int64)
    choices = [position for position, size in enumerate(sizes) if size > 1]
    if choices:  # what has one option is left out: arrays have few dimensions
        mixes[:, choices] = np.indices([sizes[k] for k in choices]).reshape(len(choices), -1).T
    return mixes


def _sample(options: Options, model: int, members: Sequence[int], sizes: Sequence[int]) -> Integers:
    """Return mixes to begin with: the fewest, the most, and some numbers of each variant alone.

    These are few replicas, and what just meets each row or parts of it. Pricing finds all others that matter.
    """
    steps = [set(range(min(size, FEW))) | {size - 1} for size in sizes]
    for r in np.flatnonzero(options.requirement[:, model]).tolist():
        parts = options.requirement[r, model] * np.arange(1, PARTS + 1) // PARTS
        for own, v, size in zip(steps, members, sizes, strict=True):
            first = int(options.first[v])
            enough = np.searchsorted(options.amounts[r, first : first + size], parts)
            own.update(min(step, size - 1) for step in (*enough.tolist(), max(0, int(enough[-1]) - 1)))
    mixes = [[0] * len(sizes), [size - 1 for size in sizes]]
    for position, own in enumerate(steps):
        mixes += [[step if other == position else 0 for other in range(len(sizes))] for step in sorted(own)]
    own_ceilings = [(limit, amounts) for whose, limit, amounts in options.ceilings if whose == model]
    mixes += [_filled(options, members, mix, own_ceilings) for mix in mixes] if own_ceilings else []
    return np.array(mixes, dtype=np.int64)


def _filled(
    options: Options, members: Sequence[int], mix: Sequence[int], ceilings: Sequence[tuple[int, Integers]]
) -> list[int]:
    """Return a mix with as many more replicas of each variant in turn as the ceilings of its model allow."""
    first, filled = [int(options.first[v]) for v in members], list(mix)
    for position, v in enumerate(members):
        for step in range(int(options.top[v] - options.lower[v]), filled[position], -1):
            more = [*filled[:position], step, *filled[position + 1 :]]
            held = [start + steps for start, steps in zip(first, more, strict=True)]
            if all(int(amounts[held].sum()) <= limit for limit, amounts in ceilings):
                filled = more
                break
    return filled


def is_allowed(options: Options, model: Integers, mixes: Integers) -> Booleans:
    """Tell which mixes no ceiling of their model forbids, (mixes,)."""
    allowed = np.ones(len(model), dtype=np.bool_)
    for whose, limit, amounts in options.ceilings:
        own = model == whose
        allowed[own] &= amounts[mixes[own]].sum(axis=1) <= limit
    return allowed


def around(options: Options, means: Mapping[int, Floats]) -> tuple[Integers, Integers]:
    """Return the mixes around the mean options of models: their models (mixes,) and options (mixes, width).

    Only models that the linear solution divides have any. Each variant that it divides, of many the first
    ones, is rounded down and up, and one of all variants one further. `means` is (width,) per model.
    """
    parts = [options.padding(0)]
    models = [np.zeros(0, dtype=np.int64)]
    for model, mean in means.items():
        own = list(options.members[model])
        mean_of = mean[: len(own)]
        divided = np.flatnonzero(np.abs(mean_of - np.rint(mean_of)) > WHOLE)[:MOST_ROUNDED]
        if not len(divided):
            continue
        least, most = options.first[own], options.first[own] + options.top[own] - options.lower[own]
        ways = _grid([2] * len(divided))
        rounded = np.repeat(np.floor(mean_of + WHOLE).astype(np.int64)[None, :], len(ways), axis=0)
        rounded[:, divided] += ways
        steps = np.concatenate([[np.zeros(len(own), dtype=np.int64)], np.eye(len(own), dtype=np.int64)])
        near = np.concatenate([rounded[:, None, :] + steps, rounded[:, None, :] - steps]).reshape(
            -1, len(own)
        )
        mixes = options.padding(len(near))
        mixes[:, : len(own)] = np.clip(near, least, most)
        parts.append(np.unique(mixes, axis=0))
        models.append(np.full(len(parts[-1]), model, dtype=np.int64))
    model_of, every = np.concatenate(models), np.concatenate(parts)
    allowed = is_allowed(options, model_of, every)
    return model_of[allowed], every[allowed]


def _is_dominated(options: Options, model: Integers, mixes: Integers) -> Booleans:
    """Tell which mixes are no better than one with a replica less, (mixes,).

    With one replica less nothing more is short, and it costs less, or the same with no more disruption.
    """
    short = shortfalls(options, model, mixes)
    cost, disruption = options.cost[mixes].sum(axis=1), options.disruption[mixes].sum(axis=1)
    dominated = np.zeros(len(model), dtype=np.bool_)
    lowest = np.append(options.first, len(options.count) - 1)
    for position in range(mixes.shape[1]):
        option = mixes[:, position]
        has_less = np.flatnonzero(~dominated & (option > lowest[options.variant[option]]))
        fewer = mixes[has_less].copy()
        fewer[:, position] -= 1
        less_cost = options.cost[fewer].sum(axis=1) - cost[has_less]
        less_disruption = options.disruption[fewer].sum(axis=1) - disruption[has_less]
        as_well = (shortfalls(options, model[has_less], fewer) <= short[:, has_less]).all(axis=0)
        dominated[has_less] = as_well & ((less_cost < 0) | ((less_cost == 0) & (less_disruption <= 0)))
    return dominated
