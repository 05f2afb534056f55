"""The printed tables: quality and CPU cost of every engine, and comparisons with ours."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from hack.bench.goals import short_number
from hack.bench.placement.result import EngineResult
from hack.bench.run import OURS
from hack.bench.table import Columns, Row, align, group_by, mean_of
from hack.fleets.score import COST, Unmet

Group = Sequence[EngineResult]

_NONE: Final = "-"


class Standing(StrEnum):
    """The result for our engine at the first level where the answers differ."""

    WIN = "win"
    TIE = "tie"
    LOSS = "loss"


@dataclass(frozen=True, kw_only=True, slots=True)
class EngineComparison:
    """Our engine compared with another one on one instance."""

    other: EngineResult
    standing: Standing
    level: str
    """The first level where they differ; empty if they tie."""

    difference_percent: float
    """The difference at that level relative to the better value; 100 if the better value is 0."""


def compare(ours: EngineResult, other: EngineResult) -> EngineComparison:
    """Compare two results level by level, the most important first."""
    for level, value in ours.levels.items():
        against = other.levels[level]
        if value != against:
            low, high = sorted((value, against))
            return EngineComparison(
                other=other,
                standing=Standing.WIN if value < against else Standing.LOSS,
                level=level,
                difference_percent=100.0 * (high - low) / low if low else 100.0,
            )
    return EngineComparison(other=other, standing=Standing.TIE, level="", difference_percent=0.0)


def comparisons(results: Sequence[EngineResult]) -> Iterator[EngineComparison]:
    """Compare our engine with all others, on each instance where both have an answer."""
    own = {result.instance: result for result in results if result.engine == OURS}
    for result in results:
        mine = own.get(result.instance)
        if result.engine != OURS and mine is not None and result.levels and mine.levels:
            yield compare(mine, result)


def contradictions(results: Sequence[EngineResult]) -> list[str]:
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


def _groups(results: Sequence[EngineResult]) -> list[list[EngineResult]]:
    """Return the results with an answer by family, size and engine, in order of appearance."""
    answered = [one for one in results if one.levels]
    return group_by(answered, lambda one: (one.instance.family, one.instance.size, one.engine))


def _answers(group: Group) -> str:
    """Return the number of different answers of how many repeats, for the seed with the most."""
    worst = max(group, key=lambda one: len(set(one.plans)))
    return f"{len(set(worst.plans))} of {len(worst.plans)}" if len(worst.plans) > 1 else _NONE


def _below_minimum(one: EngineResult) -> float:
    """Return the number of missing minimum replicas; a minimum is one replica of a model."""
    return sum(value for name, value in one.levels.items() if name.startswith("minimum")) / 1000


def _unmet(percent: Callable[[Unmet], float]) -> Callable[[Group], str]:
    """Return a cell with the mean unmet demand of each priority, the most important first."""

    def cell(group: Group) -> str:
        of_priority = group_by((one for each in group for one in each.unmet), lambda unmet: unmet.priority)
        of_priority.sort(key=lambda unmet: unmet[0].priority)
        return "/".join(f"{statistics.mean(map(percent, each)):.3g}" for each in of_priority) or _NONE

    return cell


def answers_table(results: Sequence[EngineResult]) -> list[str]:
    """Return the lines of the table of answers, one per engine, with times as medians."""
    own = {one.instance: one for one in results if one.engine == OURS}

    def over_bound(one: EngineResult) -> float | None:
        return cost_over_bound_percent(one, [proof for proof in results if proof.instance == one.instance])

    columns: Columns[Group] = (
        ("engine", lambda group: group[0].engine),
        ("CPU s", mean_of(lambda one: statistics.median(one.cpu_seconds))),
        ("wall s", mean_of(lambda one: statistics.median(one.wall_seconds))),
        ("MB", lambda group: short_number(max(one.peak_mb for one in group))),
        ("below minimum", mean_of(_below_minimum)),
        ("unmet by value %", _unmet(lambda unmet: unmet.by_value_percent)),
        ("by model %", _unmet(lambda unmet: unmet.by_model_percent)),
        ("gap %", mean_of(lambda one: one.worst_gap_percent, exact=True)),
        ("cost over bound %", mean_of(over_bound, exact=True)),
        ("cost to ours", mean_of(lambda one: cost_ratio(one, own.get(one.instance)), exact=True)),
        ("pending", mean_of(lambda one: one.pending_accelerators)),
        ("answers", _answers),
        ("possible", lambda group: "no" if any(one.wrong for one in group) else "yes"),
    )
    rows: list[Row] = [("family", "models", *(head for head, _ in columns))]
    last: tuple[str, str] | None = None
    for group in _groups(results):
        title = group[0].instance.family, str(group[0].instance.size)
        rows.append((*(("", "") if title == last else title), *(cell(group) for _, cell in columns)))
        last = title
    return align(rows)


def duels_table(results: Sequence[EngineResult]) -> list[str]:
    """Return the lines of the table of lexicographic comparisons of ours with every other engine."""
    head = (f"{OURS} against", "models", "wins", "ties", "losses", "worst loss %", "at")
    rows: list[Row] = [head]
    items = list(comparisons(results))
    for engine, size in sorted({(one.other.engine, one.other.instance.size) for one in items}):
        here = [one for one in items if (one.other.engine, one.other.instance.size) == (engine, size)]
        count = Counter(one.standing.value for one in here)
        lost = [one for one in here if one.standing == "loss"]
        worst = max(lost, key=lambda one: one.difference_percent, default=None)
        place = f"{worst.level}, {worst.other.instance.name}" if worst else _NONE
        loss = short_number(worst.difference_percent) if worst else _NONE
        rows.append((engine, str(size), *(str(count[v]) for v in ("win", "tie", "loss")), loss, place))
    return align(rows)


def failures(results: Sequence[EngineResult]) -> list[str]:
    """Return a line for each instance without an answer or with a wrong one, and for each disproved bound."""
    lines = [
        f"no answer: {one.engine} on {one.instance.name}: {one.failure}" for one in results if one.failure
    ]
    lines += [f"wrong: {one.engine} on {one.instance.name}: {one.wrong[0]}" for one in results if one.wrong]
    return [*lines, *(f"disproved: {text}" for text in contradictions(results))]
