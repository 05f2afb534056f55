"""The result of each row, with its rivals: goals, and the printed table with one line per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from hack.bench.goals import Goal
from hack.bench.table import align
from hack.decisions.points import PointResult, SimulationPoint, mean
from hack.decisions.rivals import SEED, NotMeasuredError, Rivals, StoredRivals, keeps, kept_rivals
from hack.decisions.rows import Row, rows

_OF_FIXED: Final = 0.95
_OF_EVERYWHERE: Final = 0.75
_OF_CONSTANT: Final = 1.10
_OF_BOUND: Final = 1.35
_OF_BEFORE: Final = 1.03
_AS_LITTLE_PERCENT: Final = 0.1
"""Difference of missed requests that counts as equal, in percentage points."""

_HEAD: Final = (
    "row", "seeds", "cost", "missed %", "may miss %", "decided/h", "reversals/h", "cheapest fixed",
    "all rows", "best constant", "mean", "peak", "wva-v1", "wva-v2", "bound",
)  # fmt: skip
_NONE: Final = "-"
_NOT_MEASURED: Final = "rivals not measured; run with --rivals"


@dataclass(frozen=True, kw_only=True, slots=True)
class RowResult:
    """One row: ours as the mean over the seeds, and with the first one, which is that of the rivals."""

    name: str
    seeds: int
    ours: PointResult
    first: PointResult
    rivals: Rivals | None
    """None if they are not measured."""

    @property
    def row(self) -> Row:
        """The row."""
        return rows()[self.name]


def results(
    played: Mapping[SimulationPoint, PointResult], kept: Mapping[str, StoredRivals]
) -> list[RowResult]:
    """Return the results of the rows that have any, in the order of the table."""
    items = []
    for row in rows().values():
        ours = {point.seed: item for point, item in played.items() if point.row == row.name}
        if SEED in ours:
            whole, rivals = mean([*ours.values()]), rivals_or_none(row, kept)
            items.append(
                RowResult(name=row.name, seeds=len(ours), ours=whole, first=ours[SEED], rivals=rivals)
            )
    return items


def rivals_or_none(row: Row, kept: Mapping[str, StoredRivals]) -> Rivals | None:
    """Return the kept rivals of a row; None if they are missing, or the row has changed."""
    try:
        return kept_rivals(row, kept)
    except NotMeasuredError:
        return None


def fixed_everywhere(kept: Mapping[str, StoredRivals]) -> Mapping[str, PointResult]:
    """Return for each row of real traffic the HPA on concurrency that keeps its promise in all of them.

    These are all rows with the same promise, and the HPA is the cheapest such one in total. Rows are left out
    if no HPA does, or unless the rivals of all of them are measured.
    """
    items: dict[str, PointResult] = {}
    real = [row for row in rows().values() if row.is_real]
    for promised in {row.promised for row in real}:
        alike = [row for row in real if row.promised == promised]
        known = [rivals.fixed for row in alike if (rivals := rivals_or_none(row, kept))]
        able = [
            setting
            for setting in zip(*known, strict=True)
            if len(known) == len(alike) and all(keeps(item, promised) for item in setting)
        ]
        if able:
            best = min(able, key=lambda setting: sum(item.cost for item in setting))
            items |= {row.name: item for row, item in zip(alike, best, strict=True)}
    return items


def row_goals(results: Sequence[RowResult], everywhere: Mapping[str, PointResult]) -> list[Goal]:
    """Return the goals of the rows that were measured; `everywhere` has an HPA for all rows of a promise."""
    items = [goal for result in results for goal in _of_row(result)]
    real = [result for result in results if result.name in everywhere]
    for promised in sorted({result.row.promised for result in real}):
        alike = [result for result in real if result.row.promised == promised]
        ratio = sum(item.ours.cost for item in alike) / sum(everywhere[item.name].cost for item in alike)
        name = f"cost_to_fixed_in_all_rows_at_{promised:g}"
        items.append(Goal(name=name, value=ratio, unit="times", most=_OF_EVERYWHERE))
    return items


def _of_row(result: RowResult) -> Iterator[Goal]:
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


def _of_rivals(result: RowResult) -> Iterator[Goal]:
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


def rows_table(results: Sequence[RowResult], everywhere: Mapping[str, PointResult]) -> list[str]:
    """Return the lines of the table; cells of rivals: cost / missed %, and our cost relative to theirs."""
    return align([_HEAD, *([*_ours(result), *_rivals(result, everywhere)] for result in results)])


def _ours(result: RowResult) -> Iterator[str]:
    row, ours = result.row, result.ours
    shares = list(ours.by_priority.values())
    yield row.name
    yield str(result.seeds)
    yield f"{ours.cost:.0f}"
    yield " / ".join(map(_percent, shares if len(shares) > 1 else [ours.missed]))
    yield f"{100 * (1 - row.promised):g}" if row.is_real else _NONE
    yield f"{ours.decided_reversals_per_hour:.1f}"
    yield f"{ours.reversals_per_hour:.1f}"


def _rivals(result: RowResult, everywhere: Mapping[str, PointResult]) -> Iterator[str]:
    rivals, ours = result.rivals, result.first
    if rivals is None:
        yield from (_NOT_MEASURED, *[_NONE] * 7)
        return
    fixed = rivals.cheapest_fixed(result.row.promised)
    yield _cell(fixed, ours) if fixed else "none keeps it"
    others = (everywhere.get(result.name), rivals.constant, rivals.mean, rivals.peak)
    for other in (*others, *rivals.rules, rivals.bound):
        yield _cell(other, ours)


def _cell(other: PointResult | None, ours: PointResult) -> str:
    if other is None:
        return _NONE
    name = other.policy.partition(":")[2] if ":" in other.policy and "bound" not in other.policy else ""
    ratio = f", {ours.cost / other.cost:.2f}" if other.cost else ""
    shares = list(other.by_priority.values())
    missed = "/".join(map(_percent, shares if len(shares) > 1 else [other.missed]))
    return f"{name} {other.cost:.0f} / {missed}{ratio}".strip()


def _percent(share: float) -> str:
    return f"{100 * share:.2f}"
