"""Known prices, told for the rows of the problem at hand; and those of an answer, to be known next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from controller.planning.known_prices import KnownPrices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from controller.planning.columns.arrays import Floats
    from controller.planning.columns.cohorts import Levels
    from controller.planning.columns.resources import Resources
    from controller.planning.columns.selection import Found
    from controller.planning.problem import PlacementProblem


class Earlier:
    """What an earlier search ended with. Rows that it did not know cost nothing."""

    def __init__(
        self, known: KnownPrices, problem: PlacementProblem, resources: Resources, levels: Levels
    ) -> None:
        position = {row: index for index, row in enumerate((*known.slots, *known.limits))}
        now = (*_slot_rows(resources), *_limit_names(problem))
        self._position = np.array([position.get(row, -1) for row in now], dtype=np.int64)
        self._levels = levels
        self._known = {prices.level: prices for prices in known.levels}
        self.joint = self._told(known.joint)
        self.effort_seconds = known.effort_seconds

    def rows(self, level: int, capped: Sequence[int]) -> Floats | None:
        """Return the prices of a level with caps on earlier ones; None where it has not been searched."""
        known = self._known.get(self._levels.name(level))
        if known is None:
            return None
        caps = dict(known.caps)
        prices = [caps.get(self._levels.name(earlier), 0.0) for earlier in capped]
        return np.concatenate([self._told(known.rows), prices])

    def distance(self, level: int) -> float | None:
        """Return how far from its bound a level's answer stayed; None where it has not been searched."""
        known = self._known.get(self._levels.name(level))
        return None if known is None else known.distance

    def _told(self, rows: Sequence[float]) -> Floats:
        told: Floats = np.array([*rows, 0.0])[self._position]
        return told


def known_prices(problem: PlacementProblem, resources: Resources, found: Found) -> KnownPrices:
    """Return what a search ended with, by the names of its rows."""
    return KnownPrices(
        slots=_slot_rows(resources),
        limits=_limit_names(problem),
        joint=tuple(found.joint.tolist()),
        levels=found.level_prices,
        effort_seconds=found.effort_seconds,
    )


def _slot_rows(resources: Resources) -> tuple[tuple[int, int, int], ...]:
    rows = (resources.row_bin.tolist(), resources.row_size.tolist(), resources.row_pods.tolist())
    return tuple(zip(*rows, strict=True))


def _limit_names(problem: PlacementProblem) -> tuple[str, ...]:
    return tuple(f"{row.kind} {row.name}" for row in problem.limits)
