"""Ours against another engine on the same instance, in lexicographic order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from hack.bench.placement.outcome import Outcome
from hack.fleets.score import COST


class Verdict(StrEnum):
    """Who is better at the first level where they differ."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


@dataclass(frozen=True, kw_only=True, slots=True)
class Comparison:
    """One engine against one other on one instance."""

    other: Outcome
    verdict: Verdict
    level: str
    """The first level where they differ; empty for a tie."""

    difference_percent: float
    """How much worse the worse one is there, relative to the better one; 100 where that one has none."""


def compared(ours: Outcome, other: Outcome) -> Comparison:
    """Compare the values of all levels, in order."""
    for level, value in ours.levels.items():
        against = other.levels[level]
        if value != against:
            low, high = sorted((value, against))
            return Comparison(
                other=other,
                verdict=Verdict.WIN if value < against else Verdict.LOSS,
                level=level,
                difference_percent=100.0 * (high - low) / low if low else 100.0,
            )
    return Comparison(other=other, verdict=Verdict.TIE, level="", difference_percent=0.0)


def comparisons(outcomes: Sequence[Outcome], *, ours: str) -> Iterator[Comparison]:
    """Compare one engine with all others, wherever both have an answer."""
    own = {outcome.instance: outcome for outcome in outcomes if outcome.engine == ours}
    for outcome in outcomes:
        mine = own.get(outcome.instance)
        if outcome.engine != ours and mine is not None and outcome.levels and mine.levels:
            yield compared(mine, outcome)


def disproved(outcomes: Sequence[Outcome]) -> list[str]:
    """Return a sentence for each bound that some other possible answer is better than."""
    return [
        f"{one.engine} on {one.instance.name}: {level} can't be below {bound.bound}, yet"
        f" {other.engine} has {other.levels[level]}"
        for one in outcomes
        for level, bound in one.bounds.items()
        if level in one.levels
        for other in outcomes
        if other.instance == one.instance
        and other.levels
        and not other.wrong
        and _before(other, level) == _before(one, level)
        and other.levels[level] < bound.bound
    ]


def cost_over_bound_percent(outcome: Outcome, proofs: Sequence[Outcome]) -> float | None:
    """Return how far the cost is above the best bound proven by any engine that reached the same before cost.

    None where nobody did: to serve less is no saving.
    """
    bounds = [
        other.bounds[COST].bound
        for other in proofs
        if COST in other.bounds and _before(other, COST) == _before(outcome, COST)
    ]
    if not bounds or not max(bounds):
        return None
    return 100.0 * (outcome.levels[COST] / max(bounds) - 1)


def cost_ratio(outcome: Outcome, ours: Outcome | None) -> float | None:
    """Return the cost relative to ours where the same is served, else None."""
    if ours is None or not ours.levels or _before(outcome, COST) != _before(ours, COST):
        return None
    return outcome.levels[COST] / ours.levels[COST] if ours.levels[COST] else None


def _before(outcome: Outcome, level: str) -> list[int]:
    """Return the values of all levels that matter more."""
    names = list(outcome.levels)
    return [outcome.levels[name] for name in names[: names.index(level)]]
