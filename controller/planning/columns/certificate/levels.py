"""What is proven over every replica mix, level by level, and the columns that come of it."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from controller.planning.columns.certificate.certify import Quoted, certify
from controller.planning.columns.certificate.covers import least_of_all
from controller.planning.columns.pool import pool_of
from controller.planning.columns.selection import level_values
from controller.planning.problem import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from controller.planning.columns.arrays import Integers
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.phase import Phase
    from controller.planning.columns.pool import Pool
    from controller.planning.columns.prices import Prices
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Selection
    from controller.planning.problem import Proof

NOTHING_MISSED: Mapping[int, Integers] = {}
"""No mixes for any pool."""


class Certifier:
    """Keeps what no answer at all can be below."""

    def __init__(self, pools: Sequence[Pool], resources: Resources, levels: Levels) -> None:
        self._resources = resources
        self._levels = levels
        self._least = least_of_all(pools, levels)
        self._bounds: dict[int, int] = dict(enumerate(self._least))

    def missed(
        self,
        pools: Sequence[Pool],
        phase: Phase,
        prices: Prices,
        values: Sequence[int],
        tolerance: float,
    ) -> Mapping[int, Integers]:
        """Note what the prices prove of a level, and return the mixes that columns lack for it.

        Where the columns took an earlier level for settled that is not, nothing is proven.
        """
        if not self._is_settled(phase, values):
            return NOTHING_MISSED
        quoted = self._quoted(pools, phase, prices)
        found = certify(pools, self._resources, quoted, tolerance=tolerance)
        self._note(phase.level, found.bound / phase.unit)
        is_near = prices.bound - phase.tie - found.bound <= 2 * tolerance
        return NOTHING_MISSED if is_near else found.mixes

    def with_best_alone(self, pools: Sequence[Pool], alone: Selection) -> list[Pool]:
        """Note what cost can't be below where nothing is shared, and return columns with what attains it.

        `alone` are the columns that are best for each model by itself.
        """
        *values, _ = level_values(pools, self._resources, self._levels, alone)
        if any(value > least for value, least in zip(values, self._least, strict=True)):
            return list(pools)
        chosen = zip(pools, alone.columns, strict=True)
        quoted = Quoted(
            level=len(self._levels),
            caps={},
            unit=1,
            rows=np.zeros(len(self._resources.capacity)),
            known=tuple(p.cost[np.arange(len(best)), best].astype(np.float64) for p, best in chosen),
            constant=0.0,
        )
        found = certify(pools, self._resources, quoted, tolerance=0.0)
        self._note(quoted.level, found.bound)
        return [
            pool.joined(pool_of(pool.cohort, found.mixes[index])) if index in found.mixes else pool
            for index, pool in enumerate(pools)
        ]

    def certified(self, proofs: Sequence[Proof]) -> tuple[Proof, ...]:
        """Return proofs with what holds over every mix."""
        return tuple(
            self._certified(level, proof) if proof.scope is Scope.COLUMNS else proof
            for level, proof in enumerate(proofs)
        )

    def _certified(self, level: int, proof: Proof) -> Proof:
        known = self._bounds.get(level)
        if known is None:
            return proof
        bound = min(known, proof.value)
        is_same = bound >= proof.bound
        return replace(proof, certified=bound, scope=Scope.EVERYTHING if is_same else proof.scope)

    def _is_settled(self, phase: Phase, values: Sequence[int]) -> bool:
        """Tell whether each earlier level that is not kept by a row is at the least of all mixes."""
        return all(
            values[level] <= self._least[level] for level in range(phase.level) if level not in phase.capped
        )

    def _quoted(self, pools: Sequence[Pool], phase: Phase, prices: Prices) -> Quoted:
        shared, is_cost = len(self._resources.capacity), phase.level == len(self._levels)
        known = [
            (reduced - pool.disturbed if is_cost else reduced).min(axis=1)
            for pool, reduced in zip(pools, prices.answer.reduced, strict=True)
        ]
        models = sum(float(reduced.min(axis=1).sum()) for reduced in prices.answer.reduced)
        return Quoted(
            level=phase.level,
            caps=dict(zip(phase.capped, prices.rows[shared:].tolist(), strict=True)),
            unit=phase.unit if is_cost else 0,
            rows=prices.rows[:shared],
            known=tuple(known),
            constant=prices.bound - models,
        )

    def _note(self, level: int, bound: float) -> None:
        """Keep a bound if it is the best so far; values are whole numbers."""
        known = self._bounds.get(level, 0)
        self._bounds[level] = max(known, math.ceil(bound - 1e-9)) if math.isfinite(bound) else known
