"""Patterns: replica mixes of one model, with all data that does not depend on other models.

Source: the pattern formulation of Gilmore and Gomory (1961). A pattern has one option for each variant of its
model. What one model alone determines (shortfalls, cost, disruption) is a constant of its patterns, so only
the rows that models share remain to be solved.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from controller.planning.engine.options import NONE, Options, sum_over_mixes
from controller.planning.engine.shared import Booleans, Floats, Integers
from controller.planning.problem import PER_MILLE, Stage

FEW = 4
"""Mixes with fewer extra replicas of one variant than this are initial ones."""

PARTS = 8
"""Initial mixes also just meet each of this many equal parts of a requirement."""

MOST_ROUNDED = 6
"""The maximum number of variants per model whose mean options are rounded both ways."""

WHOLE = 1e-6
"""Distance from an integer up to which a mean option is considered integer."""


@dataclass(frozen=True, kw_only=True)
class Patterns:
    """The patterns, grouped by model."""

    model: Integers
    """(patterns,), ascending: the model."""

    options: Integers
    """(patterns, most variants of a model): the options, padded with the last one, which counts nothing."""

    cost: Integers
    """(patterns,): the cost of the replicas, including starts and stops."""

    disruption: Integers
    """(patterns,): accelerators that start or stop, at least one per replica."""

    short: Integers
    """(stages, patterns): the weighted shortfall in per mille."""

    least_short: Integers
    """(stages, models): a lower bound on the shortfall of the model's mixes; with a ceiling, it may not be
    attained.
    """

    start: Integers
    """(models,): the first pattern of each model."""

    @cached_property
    def _keys(self) -> NDArray[np.bytes_]:
        """(patterns,): the model and options as sortable bytes."""
        return _keys_of(self.model, self.options)

    def numbers(self, model: Integers, options: Integers) -> Integers:
        """Return the indices of patterns, given models and options. Raises KeyError for a missing one."""
        indices, is_missing = self.places(model, options)
        if is_missing.any():
            raise KeyError("a mix is not among the patterns")
        return indices

    def places(self, model: Integers, options: Integers) -> tuple[Integers, Booleans]:
        """Return the index of each mix, or where it would be inserted, and whether it is missing."""
        keys = _keys_of(model, options)
        indices = np.searchsorted(self._keys, keys)
        return indices, self._keys[np.minimum(indices, len(self._keys) - 1)] != keys

    def replicas(self, options: Options, chosen: Integers) -> tuple[int, ...]:
        """Return the replicas of each variant in the chosen patterns (models,)."""
        own = self.options[chosen].ravel()
        replicas = np.zeros(len(options.first) + 1, dtype=np.int64)
        replicas[options.variant[own]] = options.count[own]
        return tuple(replicas[:-1].tolist())

    def least(self, values: Floats) -> Floats:
        """Return the minimum of some values over the patterns of each model, (models,)."""
        return np.minimum.reduceat(values, self.start)

    def best(self, values: Floats) -> Integers:
        """Return the first pattern of each model with the minimum value, (models,)."""
        at_least = np.flatnonzero(values <= self.least(values)[self.model])
        return at_least[np.searchsorted(self.model[at_least], np.arange(len(self.start)))]


@dataclass(frozen=True, kw_only=True)
class PatternSelection:
    """One pattern per model, and the nodes to add."""

    patterns: Integers
    """(models,): the index of the chosen pattern of each model."""

    added: tuple[int, ...]
    """The number of nodes to add, per growth."""


def _distinct(options: Options, model: Integers, mixes: Integers) -> tuple[Integers, Integers]:
    """Return the distinct mixes that no ceiling forbids, in order."""
    allowed = is_allowed(options, model, mixes)
    model, mixes = model[allowed], mixes[allowed]
    _, first = np.unique(_keys_of(model, mixes), return_index=True)
    return model[first], mixes[first]


def _keys_of(model: Integers, options: Integers) -> NDArray[np.bytes_]:
    """Return each model with its options as bytes, which compare like these numbers, element by element."""
    keys = np.concatenate([model[:, None], options], axis=1).astype(">i8", order="C")
    return keys.view(f"S{keys.itemsize * keys.shape[1]}").ravel()


def per_mille(missing: Integers, required: Integers) -> Integers:
    """Return the missing per mille of a requirement, rounded up; 0 without a requirement."""
    return -(-PER_MILLE * missing // np.maximum(required, 1))


def shortfalls(options: Options, model: Integers, mixes: Integers) -> Integers:
    """Return the weighted shortfall of each mix at each stage, (stages, mixes)."""
    short = np.zeros((len(Stage), len(model)), dtype=np.int64)
    for r, amounts in enumerate(options.amounts):
        required, stage = options.requirement[r, model], options.stage[r, model]
        missing = np.maximum(required - sum_over_mixes(amounts, mixes), 0)
        part = per_mille(missing, required) * options.weight[r, model]
        has = stage != NONE
        short[stage[has], np.flatnonzero(has)] += part[has]
    return short


def extend(options: Options, patterns: Patterns, model: Integers, mixes: Integers) -> Patterns:
    """Return the patterns extended by more mixes."""
    model, mixes = _distinct(options, model, mixes)
    at, is_new = patterns.places(model, mixes)
    if not is_new.any():
        return patterns
    at, model, mixes = at[is_new], model[is_new], mixes[is_new]
    short = shortfalls(options, model, mixes)
    least_short = patterns.least_short.copy()
    for stage in Stage:
        np.minimum.at(least_short[stage], model, short[stage])
    models = np.insert(patterns.model, at, model)
    return Patterns(
        model=models,
        options=np.insert(patterns.options, at, mixes, axis=0),
        cost=np.insert(patterns.cost, at, sum_over_mixes(options.cost, mixes)),
        disruption=np.insert(patterns.disruption, at, sum_over_mixes(options.disruption, mixes)),
        short=np.insert(patterns.short, at, short, axis=1),
        least_short=least_short,
        start=np.searchsorted(models, np.arange(len(patterns.start))),
    )


def first_patterns(options: Options) -> Patterns:
    """Return a sample of the mixes of each model. Pricing finds all others."""
    parts, which = [], []
    for model, members in enumerate(options.members):
        counts = _sample(options, model, members)
        own = options.padding(len(counts))
        own[:, : len(members)] = counts + options.first[list(members)]
        parts.append(own)
        which.append(np.full(len(counts), model, dtype=np.int64))
    model_of, mixes = _distinct(options, np.concatenate(which), np.concatenate(parts))
    start = np.searchsorted(model_of, np.arange(len(options.members)))
    short = shortfalls(options, model_of, mixes)
    unlimited = shortfalls(options, np.arange(len(start)), options.tops)
    return Patterns(
        model=model_of,
        options=mixes,
        cost=sum_over_mixes(options.cost, mixes),
        disruption=sum_over_mixes(options.disruption, mixes),
        short=short,
        least_short=np.minimum(np.minimum.reduceat(short, start, axis=1), unlimited),
        start=start,
    )


def _sample(options: Options, model: int, members: Sequence[int]) -> Integers:
    """Return initial mixes: the fewest, the most, and each variant alone with some numbers of replicas.

    These are few replicas, and the numbers that just meet each row or parts of it.
    """
    sizes = [int(options.top[v] - options.lower[v]) + 1 for v in members]
    steps = [set(range(min(size, FEW))) | {size - 1} for size in sizes]
    for r in np.flatnonzero(options.requirement[:, model]).tolist():
        parts = options.requirement[r, model] * np.arange(1, PARTS + 1) // PARTS
        for own, v, size in zip(steps, members, sizes, strict=True):
            first = int(options.first[v])
            enough = np.searchsorted(options.amounts[r, first : first + size], parts)
            own.update(np.minimum([*enough, max(0, enough[-1] - 1)], size - 1).tolist())
    mixes = [[0] * len(sizes), [size - 1 for size in sizes]]
    for position, own in enumerate(steps):
        alone = [[0] * len(sizes) for _ in own]
        for mix, step in zip(alone, sorted(own), strict=True):
            mix[position] = step
        mixes += alone
    own_ceilings = [(limit, amounts) for whose, limit, amounts in options.ceilings if whose == model]
    mixes += [_fill(options, members, mix, own_ceilings) for mix in mixes] if own_ceilings else []
    return np.array(mixes, dtype=np.int64)


def _fill(
    options: Options, members: Sequence[int], mix: Sequence[int], ceilings: Sequence[tuple[int, Integers]]
) -> list[int]:
    """Return a mix with as many replicas of each variant in turn as the ceilings of its model allow."""
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
    """Return which mixes respect the ceilings of their model, (mixes,)."""
    allowed = np.ones(len(model), dtype=np.bool_)
    for whose, limit, amounts in options.ceilings:
        own = model == whose
        allowed[own] &= sum_over_mixes(amounts, mixes[own]) <= limit
    return allowed


def around(options: Options, means: Mapping[int, Floats]) -> tuple[Integers, Integers]:
    """Return the mixes around fractional mean options: models (mixes,), options (mixes, width).

    Up to MOST_ROUNDED fractional variants of a model are rounded down and up, the others down, and then at
    most one of all variants is moved by one. `means` is (width,) per model; models without a fractional mean
    have no mixes.
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
        ways = np.array(list(product((0, 1), repeat=len(divided))))
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
