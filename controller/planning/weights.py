"""Weights of shortfalls: the value of the missing capacity."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

from controller.planning.problem import CoverRow, Level, Stage, VariantTerms

STEPS = 1000
"""Resolution of weights: the weight of the most valuable requirement of a level."""

FLOOR_SHARE = 4
"""Divisor of a level's average value that gives its minimum weight, so that small models are not starved."""


def weigh(rows: Sequence[CoverRow], terms: Sequence[VariantTerms]) -> tuple[CoverRow, ...]:
    """Return the rows with their weights; only rows of load and demand are weighted.

    The value of a requirement is the least cost of serving it.
    """
    weighs = (Stage.LOAD, Stage.DEMAND)
    values = {index: _value(row, terms) for index, row in enumerate(rows) if row.stage in weighs}
    levels: dict[Level, list[int]] = defaultdict(list)
    for index in values:
        levels[rows[index].level].append(index)
    weights = {index: weight for members in levels.values() for index, weight in _weights(members, values)}
    return tuple([replace(row, weight=row.weight * weights.get(index, 1)) for index, row in enumerate(rows)])


def _weights(members: Sequence[int], values: dict[int, int]) -> list[tuple[int, int]]:
    most = max(values[index] for index in members)
    if not most:
        return [(index, 1) for index in members]
    floor = sum(values[index] for index in members) // (len(members) * FLOOR_SHARE)
    return [(index, max(1, STEPS * max(values[index], floor) // most)) for index in members]


def _value(row: CoverRow, terms: Sequence[VariantTerms]) -> int:
    """Return the least cost of serving a requirement."""
    return min(
        [-(-row.requirement // amount) * terms[variant].cost for variant, amount in row.terms if amount],
        default=0,
    )
