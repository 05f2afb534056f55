"""Lexicographic comparison of our engine with another one on the same instance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hack.bench.compared import OURS
from hack.bench.placement.result import EngineResult
from hack.fleets.score import COST


class Standing(StrEnum):
    """The result for our engine at the first level where the answers differ."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """Our engine compared with another one on one instance."""

    other: EngineResult
    standing: Standing
    level: str
    """The first level where they differ; empty if they tie."""

    difference_percent: float
    """The difference at that level relative to the better value; 100 if the better value is 0."""


def compared(ours: EngineResult, other: EngineResult) -> Comparison:
    """Compare two results level by level, the most important first."""
    for level, value in ours.levels.items():
        against = other.levels[level]
        if value != against:
            low, high = sorted((value, against))
            return Comparison(
                other=other,
                standing=Standing.WIN if value < against else Standing.LOSS,
                level=level,
                difference_percent=100.0 * (high - low) / low if low else 100.0,
            )
    return Comparison(other=other, standing=Standing.TIE, level="", difference_percent=0.0)


def comparisons(results: Sequence[EngineResult]) -> Iterator[Comparison]:
    """Compare our engine with all others, on each instance where both have an answer."""
    own = {result.instance: result for result in results if result.engine == OURS}
    for result in results:
        mine = own.get(result.instance)
        if result.engine != OURS and mine is not None and result.levels and mine.levels:
            yield compared(mine, result)


def disproved(results: Sequence[EngineResult]) -> list[str]:
    """Return a message for each bound that a feasible answer of another engine beats."""
    return [
        f"{one.engine} on {one.instance.name}: {level} can't be below {bound.bound}, yet"
        f" {other.engine} has {other.levels[level]}"
        for one in results
        for level, bound in one.bounds.items()
        if level in one.levels
        for other in results
        if other.instance == one.instance
        and other.levels
        and not other.wrong
        and _before(other, level) == _before(one, level)
        and other.levels[level] < bound.bound
    ]


def cost_over_bound_percent(result: EngineResult, proofs: Sequence[EngineResult]) -> float | None:
    """Return how far the cost is above the best bound proven by an engine with equal levels before cost.

    None if there is no such bound, or if it is 0: costs are not comparable if less demand is served.
    """
    bounds = [
        other.bounds[COST].bound
        for other in proofs
        if COST in other.bounds and _before(other, COST) == _before(result, COST)
    ]
    if not bounds or not max(bounds):
        return None
    return 100.0 * (result.levels[COST] / max(bounds) - 1)


def cost_ratio(result: EngineResult, ours: EngineResult | None) -> float | None:
    """Return the cost relative to ours, or None if the levels before cost differ or our cost is 0."""
    if ours is None or not ours.levels or _before(result, COST) != _before(ours, COST):
        return None
    return result.levels[COST] / ours.levels[COST] if ours.levels[COST] else None


def _before(result: EngineResult, level: str) -> list[int]:
    """Return the values of all more important levels."""
    names = list(result.levels)
    return [result.levels[name] for name in names[: names.index(level)]]
