"""A bound over every replica mix, and the mixes that columns lack.

At any prices of what is shared, the cheapest mixes of all models, less what all slots, limits and caps would
fetch, bound every answer. Columns say what is cheapest of those that were generated; here each model's
problem is solved over all its mixes, down to a tolerance, by branch and bound. A mix that is cheaper than
every column is one that generation missed.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate.costs import pieces
from controller.planning.columns.certificate.models import models_of, roots_of
from controller.planning.columns.certificate.rows import needs_of
from controller.planning.columns.certificate.tree import Tree

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from controller.planning.columns.arrays import Floats, Integers
    from controller.planning.columns.certificate.rows import Needs
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.resources import Resources

BOXES_PER_MODEL = 10
"""How many parts of mixes are bounded at most, for each model: one or two mostly lead to the end there is."""

FEWEST_BOXES = 20_000
"""How many of few models are: where there is no end, more of them hardly make the bound better."""

_ROUNDING = 1e-11
"""Relative error of a sum over all models in double precision."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Quoted:
    """One level at some prices, and what its columns come to there."""

    level: int
    caps: Mapping[int, float]
    """Earlier levels that are kept by a row -> price of a unit of shortfall there; the others keep to what is
    least for each model alone."""

    unit: int
    """What one of cost counts for; 0 where cost is not what counts."""

    rows: Floats
    """Prices of slots and limits."""

    known: tuple[Floats, ...]
    """Per pool (n,): what each model's cheapest column comes to, disturbances aside."""

    constant: float
    """What the bound has beside the models."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Certificate:
    """What is known of all mixes at a level."""

    bound: float
    """No answer counts for less."""

    mixes: Mapping[int, Integers]
    """Pool -> (n, 1, w): mixes cheaper than all columns; the fewest replicas where a model has none."""


def certify(pools: Sequence[Pool], resources: Resources, quoted: Quoted, *, tolerance: float) -> Certificate:
    """Return the bound at the prices, no further below the best that they allow than is tolerated."""
    where = [index for index, pool in enumerate(pools) if not pool.cohort.is_enumerable]
    sums = [float(known.sum()) for known in quoted.known]
    error = _ROUNDING * (abs(quoted.constant) + sum(float(np.abs(known).sum()) for known in quoted.known))
    bound = quoted.constant - error + sum(part for index, part in enumerate(sums) if index not in where)
    if not where:
        return Certificate(bound=bound, mixes={})
    cohorts = [pools[index].cohort for index in where]
    needs = [needs_of(cohort, quoted.level, quoted.caps) for cohort in cohorts]
    costs = [
        pieces(cohort, resources, need, quoted.rows, quoted.unit)
        for cohort, need in zip(cohorts, needs, strict=True)
    ]
    known = np.concatenate([quoted.known[index] for index in where])
    tree = Tree(models_of(costs, needs), roots_of(needs), known, tolerance)
    bound += float(tree.run(max(FEWEST_BOXES, BOXES_PER_MODEL * len(known))).sum())
    return Certificate(bound=bound, mixes=dict(_missed(where, needs, *tree.cheaper())))


def _missed(
    where: Sequence[int], needs: Sequence[Needs], models: Integers, mixes: Integers
) -> Iterator[tuple[int, Integers]]:
    """Yield each pool for which there are new mixes, with those that nothing forbids."""
    starts = np.cumsum([0, *(len(need.lower) for need in needs)])
    for index, need, (start, stop) in zip(where, needs, pairwise(starts.tolist()), strict=True):
        here = (models >= start) & (models < stop)
        found = need.lower.copy()
        found[models[here] - start] = mixes[here, : found.shape[1]]
        for cover in need.hard:
            found = np.where((cover.lacking(found) > 0)[:, None], need.lower, found)
        if (found != need.lower).any():
            yield index, found[:, None, :]
