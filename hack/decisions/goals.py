"""The goals of decisions, for what was measured."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from hack.bench.goals import Goal
from hack.decisions.points import Played
from hack.decisions.results import Result

_OF_FIXED: Final = 0.95
_OF_EVERYWHERE: Final = 0.75
_OF_CONSTANT: Final = 1.10
_OF_BOUND: Final = 1.35
_OF_BEFORE: Final = 1.03
_AS_LITTLE_PERCENT: Final = 0.1
"""Difference of missed requests that counts as equal, in percentage points."""


def row_goals(results: Sequence[Result], everywhere: Mapping[str, Played]) -> list[Goal]:
    """Return the goals of the rows that were measured; `everywhere` has an HPA for all rows of a promise."""
    items = [goal for result in results for goal in _of_row(result)]
    real = [result for result in results if result.name in everywhere]
    for promised in sorted({result.row.promised for result in real}):
        alike = [result for result in real if result.row.promised == promised]
        ratio = sum(item.ours.cost for item in alike) / sum(everywhere[item.name].cost for item in alike)
        name = f"cost_to_fixed_in_all_rows_at_{promised:g}"
        items.append(Goal(name=name, value=ratio, unit="times", most=_OF_EVERYWHERE))
    return items


def _of_row(result: Result) -> Iterator[Goal]:
    row, ours = result.row, result.ours
    if row.is_real:
        yield _missed_goal(row.name, ours.missed, 100 * (1 - row.promised))
        yield from _of_rivals(result)
    if row.before:
        cost, missed = row.before
        name = f"cost_to_before_in_{row.name}"
        yield Goal(name=name, value=ours.cost / cost, unit="times", most=_OF_BEFORE)
        yield _missed_goal(row.name, ours.missed, missed + _AS_LITTLE_PERCENT)
    for priority, most in row.most_missed.items():
        share = ours.by_priority[priority] if priority else ours.missed
        yield _missed_goal(f"{row.name}_by_{priority}" if priority else row.name, share, most)
    name = f"reversals_in_{row.name}"
    most = row.most_reversals
    yield Goal(name=name, value=ours.decided_reversals_per_hour, unit="per hour", most=most)


def _of_rivals(result: Result) -> Iterator[Goal]:
    """Yield the costs relative to the rivals that keep the promise."""
    if result.rivals is None:
        return
    fixed = result.rivals.cheapest_fixed(result.row.promised)
    others = (
        ("fixed", fixed, _OF_FIXED),
        ("best_constant", result.rivals.constant, _OF_CONSTANT),
        ("bound", result.rivals.bound, _OF_BOUND),
    )
    for name, other, most in others:
        if other:
            ratio = result.first.cost / other.cost
            yield Goal(name=f"cost_to_{name}_in_{result.name}", value=ratio, unit="times", most=most)


def _missed_goal(name: str, share: float, most: float) -> Goal:
    return Goal(name=f"missed_in_{name}", value=100 * share, unit="%", most=most)
